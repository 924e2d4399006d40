"""An object store behind the S3 protocol.

The store itself does the checking: the signature of a presigned PUT covers the digest (`x-amz-checksum-sha256`), the
length and `If-None-Match: *`, so whoever uploads can neither send other bytes nor replace an object. The store gives
the checksum back on HEAD with `ChecksumMode=ENABLED` (tried on SeaweedFS), so `stat` reports it and needs no metadata
of ours.
"""

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from registry.stores.checked_stream import CheckedStream
from registry.stores.errors import (
    ObjectMissing,
    StoreDigestMismatch,
    StoreError,
    StoreRefused,
    StoreSizeMismatch,
    StoreUnavailable,
)
from registry.stores.ports import PresignedPut, StoredObject, check_key, digest_in

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client

_EXISTS = frozenset({"PreconditionFailed", "412", "BucketAlreadyOwnedByYou"})
_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_WRONG_DIGEST = frozenset({"BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch", "InvalidDigest"})
_WRONG_SIZE = frozenset({"IncompleteBody", "EntityTooLarge", "EntityTooSmall", "MissingContentLength"})
_LATER = frozenset({"SlowDown", "RequestTimeout", "Throttling", "ConditionalRequestConflict", "OperationAborted"})
_SERVER_ERROR = 500


class S3Store:
    """Objects of one bucket.

    Args:
        endpoint: URL of the S3 service as this process reaches it.
        public_endpoint: the same as uploaders and nodes reach it, if that differs: presigned URLs are signed for it.

    """

    def __init__(
        self,
        *,
        endpoint: str,
        bucket: str,
        access_key: str,
        secret_key: str,
        region: str = "us-east-1",
        public_endpoint: str | None = None,
    ) -> None:
        self._bucket = bucket
        connect = partial(_connect, access_key=access_key, secret_key=secret_key, region=region)
        self._client = connect(endpoint)
        # A stream can't be sent twice: whoever can make it again tries again.
        self._uploader = connect(endpoint, attempts=1)
        self._presigner = connect(public_endpoint) if public_endpoint else self._client

    def ensure_ready(self) -> None:
        try:
            with _store_errors():
                self._client.head_bucket(Bucket=self._bucket)
        except ObjectMissing:
            self._create_bucket()

    def presign_put(self, key: str, *, size: int, sha256: str, expires_s: int) -> PresignedPut:
        check_key(key, sha256=sha256)
        checksum = _to_base64(sha256)
        url = self._presigner.generate_presigned_url(
            "put_object",
            Params={
                "Bucket": self._bucket,
                "Key": key,
                "ChecksumSHA256": checksum,
                "ContentLength": size,
                "IfNoneMatch": "*",
            },
            ExpiresIn=expires_s,
        )
        headers = {"Content-Length": str(size), "If-None-Match": "*", "x-amz-checksum-sha256": checksum}
        return PresignedPut(url=url, headers=headers)

    def presign_get(self, key: str, *, expires_s: int) -> str:
        digest_in(key)
        return self._presigner.generate_presigned_url(
            "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=expires_s
        )

    def stat(self, key: str) -> StoredObject | None:
        digest_in(key)
        try:
            with _store_errors(key):
                head = self._client.head_object(Bucket=self._bucket, Key=key, ChecksumMode="ENABLED")
        except ObjectMissing:
            return None
        if "ChecksumSHA256" not in head:
            raise StoreRefused(
                f"the store keeps no SHA-256 of {key!a}: it was not put there by this registry", field="key"
            )
        return StoredObject(key=key, size=head["ContentLength"], sha256=_to_hex(head["ChecksumSHA256"]))

    def put_stream(self, key: str, stream: BinaryIO, *, size: int, sha256: str) -> None:
        check_key(key, sha256=sha256)
        if self.stat(key) is not None:
            return
        checked = CheckedStream(stream, size=size, sha256=sha256)
        try:
            with _store_errors(key):
                self._uploader.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=cast("BinaryIO", checked),
                    ContentLength=size,
                    ChecksumSHA256=_to_base64(sha256),
                    IfNoneMatch="*",
                )
        except _AlreadyThere:
            return
        except StoreError as error:
            raise checked.failure or error from error

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        digest_in(key)
        with _store_errors(key):
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        with body, io.BufferedReader(_Download(body)) as reader:
            yield cast("BinaryIO", reader)

    def delete(self, key: str) -> None:
        digest_in(key)
        with _store_errors(key):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def _create_bucket(self) -> None:
        try:
            with _store_errors():
                self._client.create_bucket(Bucket=self._bucket)
        except _AlreadyThere:
            return


class _AlreadyThere(StoreError):
    """Somebody else made it first."""


class _Download(io.RawIOBase):
    """The body of a response, whose broken connections are errors of the store."""

    def __init__(self, body: "StreamingBody") -> None:
        super().__init__()
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        with _store_errors():
            chunk = self._body.read(len(view))
        view[: len(chunk)] = chunk
        return len(chunk)


def _connect(endpoint: str, *, access_key: str, secret_key: str, region: str, attempts: int = 3) -> "S3Client":
    config = Config(
        signature_version="s3v4",
        # The checksum header covers the body, so it isn't read twice to be signed as well.
        s3={"addressing_style": "path", "payload_signing_enabled": False},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        connect_timeout=5,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=32,
        proxies=_proxies(endpoint),
    )
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        region_name=region,
        config=config,
    )


def _proxies(endpoint: str) -> dict[str, str] | None:
    """None: those of the environment. A store on this machine is never asked through one."""
    return {} if urlsplit(endpoint).hostname in {"localhost", "127.0.0.1", "::1"} else None


@contextmanager
def _store_errors(key: str = "") -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise _translate(error, key) from error
    except BotoCoreError as error:
        raise StoreUnavailable(f"the object store does not answer: {error}") from error


def _translate(error: ClientError, key: str) -> StoreError:
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _MISSING:
        return ObjectMissing(key)
    if code in _EXISTS:
        return _AlreadyThere(f"{key!a} is there already")
    if code in _WRONG_DIGEST:
        return StoreDigestMismatch(f"the store got other bytes than {key!a} names")
    if code in _WRONG_SIZE:
        return StoreSizeMismatch(f"the store got more or fewer bytes for {key!a} than announced")
    if code in _LATER or status >= _SERVER_ERROR:
        return StoreUnavailable(f"the object store can't answer now: {code or status}")
    return StoreRefused(f"the object store refuses: {code or status}")


def _to_base64(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()


def _to_hex(checksum: str) -> str:
    return base64.b64decode(checksum).hex()
