"""Bytes to and from the object store by presigned URLs. No token ever travels there."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, BinaryIO

import httpx

from client.errors import DigestMismatch, FolderRefused, LorekeeperError, ServerUnreachable, TransferFailed
from client.i18n import _
from client.manifest import open_plain
from client.retry import RETRIED_STATUSES, RetryPolicy
from client.transport import problem, public_url, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from client.manifest import LocalFile
    from client.models import Upload, VersionFile
    from client.parallel import CancelSwitch
    from client.parts import PartAddress
    from client.progress import Progress

CHUNK_BYTES = 256 * 1024
ALREADY_STORED = 412
_FORBIDDEN = 403
_XML_FIELD = r"<{0}>([^<]{{1,300}})</{0}>"


class UrlExpired(TransferFailed):
    """The store doesn't accept the presigned URL any more; a fresh one may work."""


class Storage:
    """Transfers of single files; safe to use from several threads."""

    def __init__(self, *, http: httpx.Client, retry: RetryPolicy) -> None:
        """Use a connection pool that carries no credentials."""
        self._http = http
        self._retry = retry

    def close(self) -> None:
        """Close the connection pool."""
        self._http.close()

    def put(self, upload: Upload, source: LocalFile, *, progress: Progress, cancel: CancelSwitch) -> bool:
        """Store one file; return false if the store had it already.

        Raises:
            UrlExpired: ask for a fresh URL.
            TransferFailed: the store refused the file.
            FolderRefused: the file changed on disk since it was hashed.
            ServerUnreachable: no connection after all tries.

        """
        path, size = source.declared.path, source.declared.size

        def attempt() -> httpx.Response:
            progress.started("upload", path, size)
            body = _counted(read_span(source, 0, size, cancel), lambda count: progress.moved("upload", path, count))
            headers = {**upload.headers, "Content-Length": str(size)}
            return self._http.request(upload.method, upload.url, content=body, headers=headers)

        response = self._with_retries(attempt, path)
        if not response.is_success and response.status_code != ALREADY_STORED:
            raise _refused(response, path)
        progress.finished("upload", path)
        return response.is_success

    def put_part(
        self,
        source: LocalFile,
        address: PartAddress,
        *,
        start: int,
        size: int,
        progress: Progress,
        cancel: CancelSwitch,
    ) -> None:
        """Store `size` bytes of a file from `start` on as one of its parts. Raises as `put` does."""
        path, sent = source.declared.path, 0

        def count(moved: int) -> None:
            nonlocal sent
            sent += moved
            progress.moved("upload", path, moved)

        def attempt() -> httpx.Response:
            count(-sent)
            body = _counted(read_span(source, start, size, cancel), count)
            headers = {**address.headers, "Content-Length": str(size)}
            return self._http.request(address.method, address.url, content=body, headers=headers)

        response = self._with_retries(attempt, path)
        if not response.is_success:
            count(-sent)
            raise _refused(response, path)

    def get(self, url: str, target: Path, file: VersionFile, *, progress: Progress, cancel: CancelSwitch) -> None:
        """Write one file to `target`, which must not exist, checking size and digest on the way.

        Raises:
            DigestMismatch: other bytes arrived.
            TransferFailed, ServerUnreachable: the store refused, or no connection after all tries.

        Nothing is left at `target` then.

        """

        def attempt() -> httpx.Response:
            progress.started("download", file.path, file.size)
            target.unlink(missing_ok=True)
            with self._http.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
                if response.is_success:
                    with target.open("xb") as sink:
                        _receive(response, sink, file, progress, cancel)
                else:
                    response.read()
                return response

        try:
            response = self._with_retries(attempt, file.path)
        except LorekeeperError:
            target.unlink(missing_ok=True)
            raise
        if not response.is_success:
            raise _refused(response, file.path)
        progress.finished("download", file.path)

    def _with_retries(self, attempt: Callable[[], httpx.Response], path: str) -> httpx.Response:
        for number in range(1, self._retry.attempts + 1):
            last = number == self._retry.attempts
            try:
                response = attempt()
            except httpx.TransportError as error:
                if last:
                    raise ServerUnreachable(public_url(error.request.url), reason_of(error)) from error
                self._retry.pause(number)
                continue
            except (httpx.RequestError, httpx.InvalidURL, UnicodeEncodeError) as error:
                message = _("{path} can't be moved: the server gave a request for it that can't be sent, or read.")
                raise TransferFailed(path, message.format(path=path)) from error
            if last or response.status_code not in RETRIED_STATUSES:
                break
            self._retry.pause(number, response)
        return response


def read_span(source: LocalFile, start: int, size: int, cancel: CancelSwitch) -> Iterator[bytes]:
    """Give `size` bytes of a file from `start` on, in chunks.

    Raises:
        FolderRefused: the file has another size than when it was hashed.

    """
    path, left = source.declared.path, size
    with open_plain(source.location, path) as stream:
        if os.fstat(stream.fileno()).st_size != source.declared.size:
            raise FolderRefused(
                path, _("{path} changed while it was pushed; push again when it is complete.").format(path=path)
            )
        stream.seek(start)
        while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
            cancel.check()
            left -= len(chunk)
            yield chunk


def _counted(chunks: Iterator[bytes], count: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        count(len(chunk))


def _receive(
    response: httpx.Response, sink: BinaryIO, file: VersionFile, progress: Progress, cancel: CancelSwitch
) -> None:
    digest = hashlib.sha256()
    size = 0
    for chunk in response.iter_raw(CHUNK_BYTES):
        cancel.check()
        size += len(chunk)
        if size > file.size:
            break
        digest.update(chunk)
        sink.write(chunk)
        progress.moved("download", file.path, len(chunk))
    if size != file.size:
        message = _("{path} arrived with another size than the declared {size} bytes; pull again.")
        raise TransferFailed(file.path, message.format(path=file.path, size=file.size))
    if digest.hexdigest() != file.sha256:
        raise DigestMismatch(file.path, expected=file.sha256, actual=digest.hexdigest())


def _refused(response: httpx.Response, path: str) -> TransferFailed:
    """Say why the store refused, from S3's XML or a problem+json."""
    code, detail = _xml_field(response.text, "Code"), _xml_field(response.text, "Message")
    reason = f"{code}: {detail}" if code else problem(response).detail
    message = _("{path} was refused by the store (status {status}): {reason}")
    kind = UrlExpired if response.status_code == _FORBIDDEN else TransferFailed
    return kind(path, message.format(path=path, status=response.status_code, reason=reason))


def _xml_field(text: str, name: str) -> str:
    match = re.search(_XML_FIELD.format(name), text)
    return match.group(1) if match else ""
