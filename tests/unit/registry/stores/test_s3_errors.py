import pytest
from botocore.exceptions import ClientError

from registry.stores import s3
from registry.stores.errors import (
    ObjectMissing,
    StoreDigestMismatch,
    StoreError,
    StoreRefused,
    StoreSizeMismatch,
    StoreUnavailable,
)

ANSWERS = [
    ("NoSuchKey", 404, ObjectMissing),
    ("404", 404, ObjectMissing),
    ("NoSuchBucket", 404, StoreRefused),
    ("AccessDenied", 403, StoreRefused),
    ("BadDigest", 400, StoreDigestMismatch),
    ("XAmzContentChecksumMismatch", 400, StoreDigestMismatch),
    ("IncompleteBody", 400, StoreSizeMismatch),
    ("PreconditionFailed", 412, s3.ObjectExists),
    ("ConditionalRequestConflict", 409, StoreUnavailable),
    ("SlowDown", 503, StoreUnavailable),
    ("InternalError", 500, StoreUnavailable),
    ("", 502, StoreUnavailable),
]


@pytest.mark.parametrize(("code", "status", "kind"), ANSWERS)
def test_each_answer_of_the_store_becomes_one_error_of_ours(code: str, status: int, kind: type[StoreError]) -> None:
    answer = ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")  # type: ignore[typeddict-item]  # only what is read
    error = s3._translate(answer, "key")
    assert type(error) is kind
    assert error.retryable == (kind is StoreUnavailable)
