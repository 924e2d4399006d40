"""A stream that refuses to end as anything but what was announced."""

import hashlib
import io
from typing import IO, BinaryIO

from registry.stores.errors import StoreDigestMismatch, StoreError, StoreSizeMismatch, StoreUnavailable

_CHUNK_BYTES = 1 << 20


class CheckedStream(io.RawIOBase):
    """Passes on at most `size` bytes of `source`, and checks length and digest before it hands out the last of them.

    A receiver that waits for `size` bytes therefore never gets a whole object that is wrong. What was found is kept in
    `failure`, since libraries between here and the caller may wrap the exception.
    """

    def __init__(self, source: BinaryIO, *, size: int, sha256: str) -> None:
        super().__init__()
        self._source = source
        self._size = size
        self._sha256 = sha256
        self._passed = 0
        self._digest = hashlib.sha256()
        self.failure: StoreError | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, or all that is left.

        Raises:
            StoreSizeMismatch, StoreDigestMismatch: `source` is not what was announced.
            StoreUnavailable: `source` itself broke off.

        """
        wanted = self._size - self._passed if size < 0 else min(size, self._size - self._passed)
        # An empty object has no last chunk before which its emptiness could be checked.
        if wanted == 0 and self._size > 0:
            return b""
        chunk = self._read_exactly(wanted)
        self._digest.update(chunk)
        self._passed += len(chunk)
        if self._passed == self._size:
            self._check_end()
        return chunk

    def drain_to(self, target: IO[bytes]) -> None:
        """Write everything to `target`; raises like `read`."""
        while chunk := self.read(_CHUNK_BYTES):
            target.write(chunk)

    def _read_exactly(self, wanted: int) -> bytes:
        parts = []
        missing = wanted
        while missing and (part := self._read_source(missing)):
            parts.append(part)
            missing -= len(part)
        if missing:
            got = self._passed + wanted - missing
            self._fail(StoreSizeMismatch(f"{self._size} bytes were announced, {got} came"))
        return b"".join(parts)

    def _read_source(self, size: int) -> bytes:
        try:
            return self._source.read(size)
        except OSError as error:
            self.failure = StoreUnavailable(f"the bytes to be stored broke off after {self._passed}: {error}")
            raise self.failure from error

    def _check_end(self) -> None:
        if self._read_source(1):
            self._fail(StoreSizeMismatch(f"{self._size} bytes were announced, more came"))
        if (found := self._digest.hexdigest()) != self._sha256:
            self._fail(StoreDigestMismatch(f"the digest {self._sha256} was announced, the bytes have {found}"))

    def _fail(self, failure: StoreError) -> None:
        self.failure = failure
        raise failure
