"""Where the lines of a process go: its own log file, and the terminal with its name in front."""

from __future__ import annotations

import contextlib
import io
import queue
import sys
import threading
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)
_ROTATE_BYTES = 10 * 1024 * 1024
_NAME_WIDTH = 9


class LineSink(Protocol):
    def write(self, line: str) -> None: ...

    def close(self) -> None: ...


def prefix(name: str, *, colour: int | None) -> str:
    """The text in front of each line of this process: `web       | `."""
    label = f"{name:<{_NAME_WIDTH}} |"
    return f"{label} " if colour is None else f"\x1b[{colour}m{label}\x1b[0m "


class Console:
    """Lines of many threads on one stream, whole, each with its process's name.

    A stream that takes nothing for a while (Ctrl-S, a pager) must not hold up the processes, so lines wait in a queue
    of bounded length, and those that find it full are left out; the log files have them all. When the reader goes
    away (`up | head`) the processes go on too.
    """

    def __init__(self, stream: IO[str] | None = None, *, colours: bool | None = None, queued: int = 10_000) -> None:
        self._stream = sys.stdout if stream is None else stream
        if isinstance(self._stream, io.TextIOWrapper):
            # A character that the terminal lacks would end the thread below.
            self._stream.reconfigure(errors="backslashreplace")
        self._colours = self._stream.isatty() if colours is None else colours
        self._known: dict[str, str] = {}
        self._lines: queue.Queue[tuple[str, str] | None] = queue.Queue(queued)
        self._writer = threading.Thread(target=self._write, name="console", daemon=True)
        self._writer.start()

    def line(self, name: str, text: str) -> None:
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait((name, text))

    def close(self, *, seconds: float = 2.0) -> None:
        """Wait, but not for ever, until the stream has taken what is queued."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=seconds)
        self._writer.join(seconds)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (entry := self._lines.get()) is not None:
                self._stream.write(f"{self._prefix(entry[0])}{entry[1]}\n")
                self._stream.flush()

    def _prefix(self, name: str) -> str:
        if name not in self._known:
            colour = _COLOURS[len(self._known) % len(_COLOURS)] if self._colours else None
            self._known[name] = prefix(name, colour=colour)
        return self._known[name]


class LogFile:
    """The lines of one process in `file`; past 10 MiB they start again, and one older file is kept as `file`.1."""

    def __init__(
        self, file: Path, *, name: str, console: Console | None = None, rotate_bytes: int = _ROTATE_BYTES
    ) -> None:
        self._file = file
        self._name = name
        self._console = console
        self._rotate_bytes = rotate_bytes
        self._guard = threading.Lock()
        self._handle = file.open("ab", buffering=0)

    def write(self, line: str) -> None:
        with self._guard:
            if self._handle.closed:
                return
            # On a full disk lines are lost; the process must not be held up, or ended by a pipe that nobody empties.
            with contextlib.suppress(OSError):
                self._append(line)
        if self._console is not None:
            self._console.line(self._name, line)

    def close(self) -> None:
        with self._guard:
            self._handle.close()

    def _append(self, line: str) -> None:
        if self._handle.tell() > self._rotate_bytes:
            self._rotate()
        self._handle.write(f"{line}\n".encode(errors="replace"))

    def _rotate(self) -> None:
        self._file.replace(self._file.with_name(f"{self._file.name}.1"))
        fresh = self._file.open("ab", buffering=0)
        self._handle.close()
        self._handle = fresh


def pump(stream: IO[bytes], sink: LineSink) -> threading.Thread:
    """Copy a process's output to the sink, line by line, in a thread that ends with the output."""

    def copy() -> None:
        with stream:
            for line in stream:
                sink.write(line.decode("utf-8", errors="replace").rstrip("\r\n"))

    thread = threading.Thread(target=copy, name="output", daemon=True)
    thread.start()
    return thread
