"""One numbered slot for each process that counts, so that the figures of all of them can be added up.

A counting process writes into a file that bears its slot's number (``prometheus_client``'s multiprocess mode). It holds
the slot by a lock, which ends with the process however that ends; its successor takes the slot over and goes on in the
same file. So there are never more files than there were processes at once, nothing is lost with a process that was
killed, and nobody has to be told of its death.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_MOST: Final = 1024


class NoSlot(OSError):
    """As many processes count as there are slots."""


class ProcessSlot:
    """The slot of this process; after a fork the child takes one of its own."""

    def __init__(self, folder: Path) -> None:
        """Take a slot; what an earlier run left in the folder is removed by whoever comes first."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _turn(folder):
            if not _is_in_use(folder):
                for left in folder.glob("*.db"):
                    left.unlink()
            self._take()

    def __call__(self) -> int:
        """The number of this process's slot."""
        if self._pid != os.getpid():
            # The lock is the parent's; closing this copy of it leaves it locked.
            os.close(self._lock)
            with _turn(self._folder):
                self._take()
        return self._number

    def _take(self) -> None:
        for number in range(_MOST):
            lock = _try_lock(self._folder / f"{number}.slot")
            if lock is not None:
                self._number, self._lock, self._pid = number, lock, os.getpid()
                return
        raise NoSlot(f"{_MOST} processes count in {self._folder} already")


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / "turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_in_use(folder: Path) -> bool:
    for path in folder.glob("*.slot"):
        lock = _try_lock(path)
        if lock is None:
            return True
        os.close(lock)
    return False


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
