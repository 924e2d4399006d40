"""Records on disk while the database is away: files of a bounded size in one folder, oldest first.

Several processes share the folder. Each appends to a file of its own and holds a lock on it (flock, which the kernel
gives back when a process dies), so that whoever finds a file unlocked may send it: what a killed process left is sent
by the others or by its successor. A file that is sent twice is harmless, since the database keeps a record once.
The folder must be on a local disk. Everything here blocks and is called from a thread.
"""

import fcntl
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from gateway.records.segments import MAGIC, Batch, SegmentUnreadable, count_rows, pack, read_batches

_log = logging.getLogger(__name__)

_SUFFIX: Final = ".records"
_LARGEST_SEGMENT: Final = 4 * 1024 * 1024
_SEGMENTS_IN_BOUND: Final = 8


@dataclass(slots=True)
class _Sending:
    """A file that is being sent, and the batch of it whose turn it is."""

    path: Path
    source: IO[bytes]
    batches: Iterator[Batch]
    batch: Batch | None = None


class Spool:
    """The folder. What was kept first is dropped first when `bound_bytes` are full; `dropped` counts those rows.

    `bytes` is how much lay in it when it was last looked at.
    """

    def __init__(self, folder: Path, *, bound_bytes: int) -> None:
        """Use `folder`, which need not exist."""
        self._folder = folder
        self._bound = bound_bytes
        self._segment_bytes = min(_LARGEST_SEGMENT, bound_bytes // _SEGMENTS_IN_BOUND)
        self._lock = threading.Lock()
        self._writing: int | None = None
        self._sending: _Sending | None = None
        self.bytes = 0
        self.dropped = 0

    def keep(self, batch: Batch) -> None:
        """Append the batch; it has reached the disk when this returns. Raises OSError, and has then kept nothing."""
        packed = pack(batch)
        with self._lock:
            self._make_room(len(packed))
            segment = self._begin() if self._writing is None else self._writing
            size = os.fstat(segment).st_size
            try:
                _write(segment, packed)
            except OSError:
                # A batch that is cut off would end what can be read of the file.
                with suppress(OSError):
                    os.ftruncate(segment, size)
                self._end()
                raise
            self.bytes += len(packed)
            if size + len(packed) >= self._segment_bytes:
                self._end()

    def next(self) -> Batch | None:
        """The oldest batch that nobody else sends, the same until `sent` is called; None if there is none."""
        with self._lock:
            while (sending := self._sending or self._open_oldest()) is not None:
                if sending.batch is None:
                    sending.batch = self._advance(sending)
                if sending.batch is not None:
                    return sending.batch
            return None

    def sent(self) -> None:
        """What `next` gave is in the database."""
        with self._lock:
            if self._sending is not None:
                self._sending.batch = None

    def close(self) -> None:
        """Let go of all files; what is in them stays."""
        with self._lock:
            self._end()
            self._let_go()

    def _begin(self) -> int:
        """A file gets its name when it's locked and says what it is: others would take it for a damaged one before."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}{_SUFFIX}"
        nameless = path.with_suffix(".new")
        segment = os.open(nameless, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._writing = segment
        try:
            fcntl.flock(segment, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write(segment, MAGIC)
            nameless.rename(path)
            _sync_folder(self._folder)
        except OSError:
            self._end()
            nameless.unlink(missing_ok=True)
            raise
        return segment

    def _end(self) -> None:
        if self._writing is not None:
            os.close(self._writing)
            self._writing = None

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{_SUFFIX}"))

    def _make_room(self, needed: int) -> None:
        paths = self._paths()
        self.bytes = sum(map(_size, paths))
        for path in paths:
            if self.bytes + needed <= self._bound:
                return
            found = _open_unlocked(path)
            if found is not None:
                with found:
                    self._drop(path, count_rows(found))

    def _drop(self, path: Path, rows: int) -> None:
        self.bytes -= _size(path)
        path.unlink()
        self.dropped += rows
        _log.error("the spool of request records is full: the oldest %d are lost", rows)

    def _open_oldest(self) -> _Sending | None:
        self._end()
        paths = self._paths()
        self.bytes = sum(map(_size, paths))
        for path in paths:
            source = _open_unlocked(path)
            if source is not None:
                self._sending = _Sending(path, source, read_batches(source))
                return self._sending
        return None

    def _advance(self, sending: _Sending) -> Batch | None:
        """The next batch of the file, which is removed at its end."""
        try:
            batch = next(sending.batches, None)
        except SegmentUnreadable as error:
            aside = sending.path.with_suffix(".unreadable")
            sending.path.rename(aside)
            _log.error("%s: %s; what is left of it is set aside as %s", sending.path, error, aside.name)
            self._let_go()
            return None
        if batch is None:
            sending.path.unlink()
            self._let_go()
        return batch

    def _let_go(self) -> None:
        if self._sending is not None:
            self._sending.source.close()
            self._sending = None


def _open_unlocked(path: Path) -> IO[bytes] | None:
    """The file, locked; None while another process has it, or once one has sent and removed it."""
    try:
        source = path.open("rb")
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        source.close()
        return None
    if os.fstat(source.fileno()).st_nlink == 0:
        source.close()
        return None
    return source


def _write(segment: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(segment, view) :]
    os.fdatasync(segment)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
