"""One supervised process: how it is prepared, started, found healthy, and stopped."""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Self

from deploy.embedded.child import Child, Command, end_leftovers
from deploy.embedded.errors import ServerFailed, ServerStopped
from deploy.embedded.output import LogFile
from deploy.embedded.system.lock import FolderLock
from deploy.embedded.warden import Warden

if TYPE_CHECKING:
    from pathlib import Path

    from deploy.embedded.output import Console

_HEALTH_POLL_SECONDS = 0.05
_TAIL_LINES = 15


class Server(ABC):
    """A process with a folder of its own, which holds its lock, its log and the record of the running session.

    `start`, `launch`, `wait` and `restart` are for one thread; any other may `stop` or `kill` it meanwhile, which
    ends a start under way with ServerStopped or ServerFailed.
    """

    name: str
    start_seconds: float = 30.0

    def __init__(
        self,
        folder: Path,
        *,
        warden: Warden | None = None,
        console: Console | None = None,
        log_folder: Path | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self.log_file = (log_folder or self.folder) / f"{self.name}.log"
        self._given_warden = warden
        self._warden: Warden | None = warden
        self._console = console
        self._lock = FolderLock(self.folder / f"{self.name}.lock", what=str(self.folder))
        self._record = self.folder / f"{self.name}.session.json"
        self._child: Child | None = None
        self._sink: LogFile | None = None
        self._stopping = threading.Event()
        self._guard = threading.Lock()

    @abstractmethod
    def prepare(self) -> None:
        """Make the folder fit for a start; called before each one, when no process of an earlier one is left."""

    @abstractmethod
    def command(self) -> Command: ...

    @abstractmethod
    def health(self) -> bool:
        """Whether the process answers now."""

    def settle(self) -> None:  # noqa: B027  # most servers have nothing to do here
        """What has to be done each time that the process has become healthy."""

    @property
    def pid(self) -> int:
        """The pid of the running process.

        Raises:
            ServerFailed: it doesn't run.

        """
        child = self._child
        if child is None or child.exit_code is not None:
            raise ServerFailed(f"{self.name} is not running")
        return child.pid

    @property
    def running(self) -> bool:
        child = self._child
        return child is not None and child.exit_code is None

    def start(self) -> None:
        """Start the process, and return when it is healthy and settled.

        Raises:
            AlreadyRunning: another process owns this folder.
            ServerFailed: it ended, or wasn't healthy within `start_seconds`; nothing is left running.
            ServerStopped: `stop` was called meanwhile.

        """
        self._stopping.clear()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        try:
            self.launch()
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start the process in a folder that is already ours: for `start`, and again after the process has ended.

        Raises ServerFailed or ServerStopped as `start` does, but leaves the ending of a half start to `end`.
        """
        end_leftovers(self._record)
        self.prepare()
        child = self._spawn()
        self._wait_until_healthy(child)
        self.settle()

    def stop(self) -> None:
        """Ask the process to end, kill what is left after its time, and give the folder back. Idempotent."""
        self._stopping.set()
        self.end()
        if self._given_warden is None and self._warden is not None:
            self._warden.close()
            self._warden = None
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        self._lock.release()

    def end(self) -> None:
        """End the process and its session, but keep the folder."""
        with self._guard:
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def restart(self) -> None:
        """Stop and start again on the same data."""
        self.stop()
        self.start()

    def kill(self, number: int = signal.SIGKILL, *, group: bool = False) -> None:
        """Send a signal to the process, or to its whole process group."""
        if group:
            os.killpg(self.pid, number)
        else:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait until the process has ended; end its children too, and return its exit code (negative: the signal)."""
        child = self._child
        if child is None:
            raise ServerFailed(f"{self.name} is not running")
        return child.wait()

    def log_tail(self) -> str:
        """The last lines of the log, for an error message."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open(encoding="utf-8", errors="replace") as lines:
            return "".join(deque(lines, maxlen=_TAIL_LINES))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _spawn(self) -> Child:
        command = self.command()
        with self._guard:
            if self._stopping.is_set():
                raise ServerStopped(f"{self.name} was stopped before it started")
            if self._warden is None:
                self._warden = Warden()
            if self._sink is None:
                self._sink = LogFile(self.log_file, name=self.name, console=self._console)
            self._child = Child(self.name, command, sink=self._sink, warden=self._warden, record=self._record)
            return self._child

    def _wait_until_healthy(self, child: Child) -> None:
        deadline = time.monotonic() + self.start_seconds
        while not self.health():
            if self._stopping.is_set():
                raise ServerStopped(f"{self.name} was stopped while it started")
            if child.exit_code is not None:
                child.drain_output()
                raise ServerFailed(f"{self.name} ended with {child.exit_code}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} was not healthy after {self.start_seconds:.0f} s:\n{self.log_tail()}")
            time.sleep(_HEALTH_POLL_SECONDS)
        if child.exit_code is not None:
            raise ServerFailed(f"{self.name} ended with {child.exit_code}, something else answers in its place")
