"""One owner per data folder: an advisory lock that the kernel drops with its holder."""

from __future__ import annotations

import fcntl
import os
from typing import IO, TYPE_CHECKING

from deploy.embedded.errors import AlreadyRunning

if TYPE_CHECKING:
    from pathlib import Path


class FolderLock:
    """An exclusive lock on `file`, which names the pid of its holder."""

    def __init__(self, file: Path, *, what: str) -> None:
        self._file = file
        self._what = what
        self._held: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock at once.

        Raises:
            AlreadyRunning: another process, or another object of this one, holds it.

        """
        handle = self._file.open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            handle.close()
            raise AlreadyRunning(f"{self._what} is already in use by process {holder}") from None
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        self._held = handle

    def release(self) -> None:
        """Drop the lock; nothing happens when it isn't held."""
        if self._held is not None:
            self._held.close()
            self._held = None


def holder_of(file: Path) -> int | None:
    """The pid of the process that holds the lock on `file`; None when nobody does."""
    if not file.exists():
        return None
    with file.open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(handle.read().strip())
    return None
