"""Checkpoints of the audit log in an S3 bucket, under an object lock where the bucket has one.

Tried on SeaweedFS: a bucket made without a lock says so when asked and refuses a PUT that asks for one; a bucket made
with it refuses to delete a locked version, also to the owner.
"""

import base64
import hashlib
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from registry.stores.checkpoints import (
    MAX_CHECKPOINT_BYTES,
    KeptCheckpoint,
    check_checkpoint_key,
    folder_of,
    is_checkpoint_key,
)
from registry.stores.errors import StoreRefused, StoreUnavailable
from registry.stores.s3 import ObjectExists, store_errors

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

logger = logging.getLogger(__name__)
# What a store says that knows no object lock, or has none on this bucket.
_NO_LOCK: Final = frozenset({"ObjectLockConfigurationNotFoundError", "NotImplemented", "MethodNotAllowed", "NoSuchKey"})
_NO_RIGHT_TO_ASK: Final = frozenset({"AccessDenied", "403"})


class S3Checkpoints:
    """Objects of one bucket.

    Args:
        client: of the S3 service as this process reaches it.
        lock_for: how long the store is asked to hold each; zero asks for nothing.

    """

    def __init__(self, client: "S3Client", *, bucket: str, lock_for: timedelta) -> None:
        self._client = client
        self._bucket = bucket
        self._lock_for = lock_for
        self._has_lock: bool | None = None

    def put(self, key: str, body: bytes) -> KeptCheckpoint:
        check_checkpoint_key(key)
        if self._locks():
            until = datetime.now(UTC).replace(microsecond=0) + self._lock_for
            try:
                return self._put(key, body, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until)
            except (StoreRefused, StoreUnavailable) as error:
                logger.warning("the store refuses an object lock, %s is kept without one: %s", key, error)
        return self._put(key, body)

    def read(self, key: str) -> bytes:
        check_checkpoint_key(key)
        with store_errors(key):
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
            with body:
                return body.read(MAX_CHECKPOINT_BYTES)

    def first_after(self, chain: str, place: str) -> str | None:
        # Whoever may write into the bucket may leave anything there.
        while (key := self._first_object_after(chain, place)) is not None and not is_checkpoint_key(key):
            place = key
        return key

    def _first_object_after(self, chain: str, place: str) -> str | None:
        with store_errors():
            listed = self._client.list_objects_v2(
                Bucket=self._bucket, Prefix=folder_of(chain), StartAfter=place, MaxKeys=1
            )
        return next((entry["Key"] for entry in listed.get("Contents", [])), None)

    def _put(self, key: str, body: bytes, **lock: Any) -> KeptCheckpoint:  # noqa: ANN401  as boto3 takes it
        try:
            with store_errors(key):
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=body,
                    ContentType="application/vnd.dev.sigstore.bundle.v0.3+json",
                    ChecksumSHA256=base64.b64encode(hashlib.sha256(body).digest()).decode(),
                    IfNoneMatch="*",
                    **lock,
                )
        except ObjectExists:
            return KeptCheckpoint(is_new=False)
        return KeptCheckpoint(is_new=True, locked_until=lock.get("ObjectLockRetainUntilDate"))

    def _locks(self) -> bool:
        """Whether the bucket has an object lock; asked once, unless the store does not answer."""
        if self._lock_for <= timedelta(0):
            return False
        if self._has_lock is None:
            self._has_lock = self._ask_for_lock()
            if not self._has_lock:
                logger.info("the bucket %s has no object lock: checkpoints are kept without one", self._bucket)
        return self._has_lock

    def _ask_for_lock(self) -> bool:
        with store_errors():
            try:
                answer = self._client.get_object_lock_configuration(Bucket=self._bucket)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "")
                if code in _NO_LOCK or code in _NO_RIGHT_TO_ASK:
                    return False
                raise
        return answer.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled"
