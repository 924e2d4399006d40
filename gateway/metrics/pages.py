"""Memory that the processes behind one port share: a page for each, written by its process, read by all.

The pages belong to the parent: what a process that died had written stays, and its successor goes on from there.
"""

import mmap
import struct
import time
from typing import Final

_PAGE: Final = 512 * 1024
_HEAD: Final = struct.Struct("<QI")  # how often the page was written (odd while it is being written), and its length
_TRIES: Final = 50
_REST_S: Final = 0.0005


class Pages:
    """`count` pages of up to half a megabyte. Make them before the processes are forked."""

    def __init__(self, count: int) -> None:
        """Empty pages; memory is taken as they are written."""
        self._count = count
        self._memory = mmap.mmap(-1, count * _PAGE)

    @property
    def largest(self) -> int:
        """How many bytes fit on a page."""
        return _PAGE - _HEAD.size

    def write(self, number: int, data: bytes) -> None:
        """Replace one's own page; raises ValueError if it doesn't fit."""
        if len(data) > self.largest:
            message = f"{len(data)} bytes don't fit on a page"
            raise ValueError(message)
        at = number * _PAGE
        version = _HEAD.unpack_from(self._memory, at)[0] | 1
        _HEAD.pack_into(self._memory, at, version, 0)
        self._memory[at + _HEAD.size : at + _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._memory, at, version + 1, len(data))

    def read(self, number: int) -> bytes:
        """A page as it was at one moment; empty if nothing was written, or its process died in the middle of it."""
        at = number * _PAGE
        for _ in range(_TRIES):
            version, length = _HEAD.unpack_from(self._memory, at)
            data = self._memory[at + _HEAD.size : at + _HEAD.size + length]
            if not version & 1 and version == _HEAD.unpack_from(self._memory, at)[0]:
                return data
            time.sleep(_REST_S)
        return b""

    def others(self, number: int) -> list[bytes]:
        """The pages of all but one process that have something on them."""
        return [page for page in (self.read(other) for other in range(self._count) if other != number) if page]
