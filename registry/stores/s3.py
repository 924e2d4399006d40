"""An object store behind the S3 protocol.

The store itself does the checking: the signature of a presigned PUT covers the digest (`x-amz-checksum-sha256`), the
length and `If-None-Match: *`, so whoever uploads can neither send other bytes nor replace an object. The store gives
the checksum back on HEAD with `ChecksumMode=ENABLED` (tried on SeaweedFS), so `stat` reports it and needs no metadata
of ours.

An upload in parts is checked part by part in the same way, and completed with `If-None-Match: *`. Its checksum is one
of the parts' checksums (S3 calls it composite), which says nothing of the SHA-256 of the whole.
"""

import base64
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from operator import itemgetter
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
from registry.stores.ports import PresignedPut, StoredObject, StoredPart, check_key, digest_in

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

_EXISTS = frozenset({"PreconditionFailed", "412", "BucketAlreadyOwnedByYou"})
_MISSING = frozenset({"NoSuchKey", "NoSuchUpload", "404", "NotFound"})
_WRONG_DIGEST = frozenset(
    {"BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch", "InvalidDigest", "InvalidPart"}
)
_WRONG_SIZE = frozenset({"IncompleteBody", "EntityTooLarge", "EntityTooSmall", "MissingContentLength"})
_LATER = frozenset({"SlowDown", "RequestTimeout", "Throttling", "ConditionalRequestConflict", "OperationAborted"})
_SERVER_ERROR = 500
# Between a checksum of checksums and the number of parts; no base64 has it.
_COMPOSITE = "-"
_ARTIFACTS = "artifacts/"


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
        connect = partial(connect_s3, access_key=access_key, secret_key=secret_key, region=region)
        self._client = connect(endpoint)
        # A stream can't be sent twice: whoever can make it again tries again.
        self._uploader = connect(endpoint, attempts=1)
        self._presigner = connect(public_endpoint) if public_endpoint else self._client

    def ensure_ready(self) -> None:
        try:
            with store_errors():
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
            with store_errors(key):
                head = self._client.head_object(Bucket=self._bucket, Key=key, ChecksumMode="ENABLED")
        except ObjectMissing:
            return None
        if "ChecksumSHA256" not in head:
            raise StoreRefused(
                f"the store keeps no SHA-256 of {key!a}: it was not put there by this registry", field="key"
            )
        checksum = head["ChecksumSHA256"]
        return StoredObject(
            key=key,
            size=head["ContentLength"],
            sha256=None if _COMPOSITE in checksum else _to_hex(checksum),
            tag=head["ETag"],
        )

    def put_stream(self, key: str, stream: BinaryIO, *, size: int, sha256: str) -> None:
        check_key(key, sha256=sha256)
        if self.stat(key) is not None:
            return
        checked = CheckedStream(stream, size=size, sha256=sha256)
        try:
            with store_errors(key):
                self._uploader.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=cast("BinaryIO", checked),
                    ContentLength=size,
                    ChecksumSHA256=_to_base64(sha256),
                    IfNoneMatch="*",
                )
        except ObjectExists:
            return
        except StoreError as error:
            raise checked.failure or error from error

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        digest_in(key)
        get = partial(self._client.get_object, Bucket=self._bucket, Key=key)
        with io.BufferedReader(_Download(get, key)) as reader:
            yield cast("BinaryIO", reader)

    def delete(self, key: str) -> None:
        digest_in(key)
        with store_errors(key):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def start_parts(self, key: str) -> str:
        digest_in(key)
        with store_errors(key):
            started = self._client.create_multipart_upload(Bucket=self._bucket, Key=key, ChecksumAlgorithm="SHA256")
        return started["UploadId"]

    def presign_part(
        self, key: str, upload_id: str, *, number: int, size: int, sha256: str, expires_s: int
    ) -> PresignedPut:
        digest_in(key)
        checksum = _to_base64(sha256)
        url = self._presigner.generate_presigned_url(
            "upload_part",
            Params={
                "Bucket": self._bucket,
                "Key": key,
                "UploadId": upload_id,
                "PartNumber": number,
                "ChecksumSHA256": checksum,
                "ContentLength": size,
            },
            ExpiresIn=expires_s,
        )
        return PresignedPut(url=url, headers={"Content-Length": str(size), "x-amz-checksum-sha256": checksum})

    def list_parts(self, key: str, upload_id: str) -> tuple[StoredPart, ...]:
        digest_in(key)
        pages = self._client.get_paginator("list_parts").paginate(Bucket=self._bucket, Key=key, UploadId=upload_id)
        with store_errors(key):
            found = [part for page in pages for part in page.get("Parts", [])]
        # SeaweedFS lists a part that was put again as often as it was put, and knows of each to the second.
        newest = {part["PartNumber"]: part for part in sorted(found, key=itemgetter("LastModified"))}
        return tuple(
            StoredPart(
                number=number,
                size=part["Size"],
                tag=part["ETag"],
                sha256=_to_hex(part["ChecksumSHA256"]) if "ChecksumSHA256" in part else "",
            )
            for number, part in sorted(newest.items())
        )

    def complete_parts(self, key: str, upload_id: str, parts: Sequence[StoredPart]) -> None:
        digest_in(key)
        try:
            with store_errors(key):
                self._client.complete_multipart_upload(
                    Bucket=self._bucket,
                    Key=key,
                    UploadId=upload_id,
                    IfNoneMatch="*",
                    MultipartUpload={
                        "Parts": [
                            {"PartNumber": part.number, "ETag": part.tag, "ChecksumSHA256": _to_base64(part.sha256)}
                            for part in parts
                        ]
                    },
                )
        except ObjectExists:
            return
        except ObjectMissing:
            # An answer that was lost on the way: the upload is gone because it was completed.
            if self.stat(key) is None:
                raise

    def abort_parts(self, key: str, upload_id: str) -> None:
        digest_in(key)
        try:
            with store_errors(key):
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload_id)
        except ObjectMissing:
            return

    def remove_abandoned(self, *, before: datetime) -> int:
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=_ARTIFACTS)
        with store_errors():
            found = [upload for page in pages for upload in page.get("Uploads", []) if upload["Initiated"] < before]
        for upload in found:
            self.abort_parts(upload["Key"], upload["UploadId"])
        return len(found)

    def _create_bucket(self) -> None:
        try:
            with store_errors():
                self._client.create_bucket(Bucket=self._bucket)
        except ObjectExists:
            return


class ObjectExists(StoreError):
    """Somebody else made it first."""


class _Download(io.RawIOBase):
    """An object as a stream: one response, and another after each seek. Broken connections are errors of the store."""

    def __init__(self, get: "Callable[..., GetObjectOutputTypeDef]", key: str) -> None:
        super().__init__()
        self._get = get
        self._key = key
        self._position = 0
        self._body: StreamingBody | None = None
        with store_errors(key):
            answer = get()
        self._size = answer["ContentLength"]
        self._body = answer["Body"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset != self._position:
            self._forget_body()
            self._position = start + offset
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if self._position >= self._size:
            return 0
        view = memoryview(buffer).cast("B")
        with store_errors(self._key):
            if self._body is None:
                self._body = self._get(Range=f"bytes={self._position}-")["Body"]
            chunk = self._body.read(len(view))
        view[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)

    def close(self) -> None:
        self._forget_body()
        super().close()

    def _forget_body(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


def connect_s3(endpoint: str, *, access_key: str, secret_key: str, region: str, attempts: int = 3) -> "S3Client":
    """A client that tries ``attempts`` times and keeps to what this registry relies on."""
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
def store_errors(key: str = "") -> Iterator[None]:
    """What goes wrong inside is an error of the store."""
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
        return ObjectExists(f"{key!a} is there already")
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
