"""Units of a running stack, each driven by a thread of its own: servers that are kept up, and steps that run once."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from deploy.embedded.child import Child, Command, end_leftovers
from deploy.embedded.errors import ServerStopped, StepFailed
from deploy.embedded.output import LogFile
from deploy.embedded.specs import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from deploy.embedded.output import Console
    from deploy.embedded.server import Server
    from deploy.embedded.specs import StepSpec
    from deploy.embedded.warden import Warden

_log = logging.getLogger(__name__)
_BACKOFF_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
CALM_SECONDS = 30.0
_POLL_SECONDS = 0.05


def backoff(failures: int) -> float:
    """How long to wait before the next start, after so many ends in short succession (at least one)."""
    return _BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS)) - 1]


class Unit(ABC):
    """One part of the stack, with what it needs first.

    `ready` is set while it may be used by those who need it; `failure` is why it will never be.
    """

    def __init__(self, name: str, needs: Sequence[str], *, on_failure: Callable[[str, Exception], None]) -> None:
        self.name = name
        self.needs = tuple(needs)
        self.ready = threading.Event()
        self.stopping = threading.Event()
        self._on_failure = on_failure
        self._thread: threading.Thread | None = None

    def begin(self, needed: Sequence[Unit]) -> None:
        """Start as soon as all of `needed` are ready, in a thread."""
        self._thread = threading.Thread(target=self._drive, args=(needed,), name=self.name, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Stop, and return when nothing of it runs any more."""
        self.stopping.set()
        self.close()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)
            self.close()
        self.ready.clear()

    @abstractmethod
    def run(self) -> None:
        """Do the unit's work; returns when it is stopped, or done."""

    @abstractmethod
    def close(self) -> None:
        """End what runs now. Idempotent, called from another thread than `run`."""

    def _drive(self, needed: Sequence[Unit]) -> None:
        try:
            if self._wait_for(needed):
                self.run()
        except ServerStopped:
            return
        except Exception as error:  # noqa: BLE001  # whatever it was, those who wait for the unit are told
            if not self.stopping.is_set():
                self._on_failure(self.name, error)

    def _wait_for(self, needed: Sequence[Unit]) -> bool:
        while not all(unit.ready.is_set() for unit in needed):
            if self.stopping.wait(_POLL_SECONDS):
                return False
        return not self.stopping.is_set()


class ServerUnit(Unit):
    """Keeps a server up. Its first start has to succeed; after that it is started again for ever.

    Each end within `calm_seconds` of the start before makes the next start wait longer.
    """

    def __init__(
        self,
        server: Server,
        needs: Sequence[str],
        *,
        on_failure: Callable[[str, Exception], None],
        calm_seconds: float = CALM_SECONDS,
    ) -> None:
        super().__init__(server.name, needs, on_failure=on_failure)
        self.server = server
        self._calm_seconds = calm_seconds

    def run(self) -> None:
        begun = time.monotonic()
        self.server.start()
        _log.info("%s is ready after %.1f s", self.name, time.monotonic() - begun)
        failures = 0
        while not self.stopping.is_set():
            up_since = time.monotonic()
            self.ready.set()
            code = self.server.wait()
            self.ready.clear()
            if self.stopping.is_set():
                return
            failures = 0 if time.monotonic() - up_since > self._calm_seconds else failures
            _log.warning("%s ended (%s)", self.name, describe_end(code))
            failures = self._start_again(failures)

    def close(self) -> None:
        self.server.stop()

    def _start_again(self, failures: int) -> int:
        """Try until it is up or to be stopped; the number of ends and failed starts in succession."""
        while True:
            failures += 1
            if self.stopping.wait(backoff(failures)):
                return failures
            begun = time.monotonic()
            try:
                self.server.launch()
            except ServerStopped:
                raise
            except Exception as error:  # noqa: BLE001  # a start that fails once may succeed the next time
                _log.warning("%s could not be started again: %s", self.name, error)
                self.server.end()
            else:
                _log.info("%s is back after %.1f s", self.name, time.monotonic() - begun)
                return failures


class StepUnit(Unit):
    """Runs a command to its end, once."""

    def __init__(
        self,
        spec: StepSpec,
        folder: Path,
        *,
        warden: Warden,
        console: Console | None,
        log_folder: Path,
        on_failure: Callable[[str, Exception], None],
    ) -> None:
        super().__init__(spec.name, spec.needs, on_failure=on_failure)
        self._spec = spec
        self._folder = folder
        self._warden = warden
        self._console = console
        self._log_file = log_folder / f"{spec.name}.log"
        self._guard = threading.Lock()
        self._child: Child | None = None

    def run(self) -> None:
        begun = time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        record = self._folder / f"{self.name}.session.json"
        end_leftovers(record)
        sink = LogFile(self._log_file, name=self.name, console=self._console)
        try:
            code = self._run(sink, record)
        finally:
            sink.close()
        if code != 0 and not self.stopping.is_set():
            raise StepFailed(f"{self.name}: {describe_end(code)}; see {self._log_file}")
        _log.info("%s is done after %.1f s", self.name, time.monotonic() - begun)
        self.ready.set()

    def close(self) -> None:
        with self._guard:
            child = self._child
        if child is not None:
            child.end()

    def _run(self, sink: LogFile, record: Path) -> int:
        command = Command(
            argv=self._spec.argv,
            folder=self._spec.folder,
            environment=resolve(self._spec.environment),
            stop_seconds=3.0,
        )
        with self._guard:
            if self.stopping.is_set():
                raise ServerStopped(f"{self.name} was stopped before it started")
            self._child = Child(self.name, command, sink=sink, warden=self._warden, record=record)
        try:
            return self._child.wait(seconds=self._spec.seconds)
        except subprocess.TimeoutExpired:
            self._child.end()
            raise StepFailed(
                f"{self.name} was not done after {self._spec.seconds:.0f} s; see {self._log_file}"
            ) from None


def describe_end(code: int) -> str:
    """An exit code in words: `exit status 1`, `signal 9`."""
    return f"signal {-code}" if code < 0 else f"exit status {code}"
