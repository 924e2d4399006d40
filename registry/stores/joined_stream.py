import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO


class JoinedStream(io.RawIOBase):
    """The bytes of several files, one after the other, with one of them open at a time."""

    def __init__(self, paths: Iterable[Path]) -> None:
        super().__init__()
        self._opened = ExitStack()
        self._files = self._open_each(paths)
        self._current: BinaryIO | None = next(self._files, None)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, fewer where a file ends, none at the end; all that is left for a negative size."""
        if size < 0:
            return self.readall()
        while self._current is not None:
            if chunk := self._current.read(size):
                return chunk
            self._current = next(self._files, None)
        return b""

    def close(self) -> None:
        self._opened.close()
        super().close()

    def _open_each(self, paths: Iterable[Path]) -> Iterator[BinaryIO]:
        for path in paths:
            self._opened.close()
            yield self._opened.enter_context(path.open("rb"))
