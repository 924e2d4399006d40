"""A file that comes as base64 text in pieces: decoded on the way, digested, and laid on disk when it is large."""

import binascii
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from registry.errors import InvalidInput, PayloadTooLarge
from registry.stores.errors import StoreUnavailable

_IN_MEMORY_BYTES: Final = 1 << 20
_GROUP: Final = 4


@dataclass(frozen=True, slots=True)
class Blob:
    """What came: ``file`` stands at its beginning; whoever has it closes it."""

    file: IO[bytes]
    size: int
    sha256: str


class Base64Blob:
    """Takes pieces of base64 text, cut anywhere, and gives the bytes they stand for.

    Args:
        limit: how many bytes may come at most.

    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._rest = b""
        self._ended = False
        self._digest = hashlib.sha256()
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115  the blob's own

    def feed(self, text: bytes) -> None:
        """Take some more.

        Raises:
            InvalidInput: what is not base64 with padding.
            PayloadTooLarge: bytes beyond the limit.
            StoreUnavailable: the disk is full.

        """
        text = self._rest + text
        whole = len(text) - len(text) % _GROUP
        self._rest = text[whole:]
        if whole:
            self._keep(text[:whole])

    def finish(self) -> Blob:
        if self._rest:
            raise InvalidInput("content: the base64 text is cut off", field="content")
        with _disk_errors():
            self._file.seek(0)
        return Blob(file=self._file, size=self._size, sha256=self._digest.hexdigest())

    def close(self) -> None:
        """Let go of what came, after ``finish`` too."""
        with _disk_errors():
            self._file.close()

    def _keep(self, text: bytes) -> None:
        if self._ended:
            raise InvalidInput("content: the base64 text goes on after its padding", field="content")
        try:
            data = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error as error:
            raise InvalidInput(f"content: this is not base64 ({error})", field="content") from None
        self._ended = text.endswith(b"=")
        self._size += len(data)
        if self._size > self._limit:
            raise PayloadTooLarge("content: the files are larger than a version may be")
        self._digest.update(data)
        with _disk_errors():
            self._file.write(data)


def decode_blob(text: str, *, limit: int) -> Blob:
    """The same for a text that is there as a whole."""
    blob = Base64Blob(limit=limit)
    try:
        blob.feed(text.encode())
        return blob.finish()
    except BaseException:
        blob.close()
        raise


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"the disk for what arrives fails: {error.strerror or error}") from error
