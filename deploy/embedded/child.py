"""One run of a program: the leader of a session of its own, watched by the warden, ended with all its children."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deploy.embedded.errors import ServerFailed
from deploy.embedded.output import pump
from deploy.embedded.system.sessions import Session, ask_to_stop, created_at, kill_sessions, wait_for_leaders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from deploy.embedded.output import LineSink
    from deploy.embedded.system.accounts import Account
    from deploy.embedded.warden import Warden

_log = logging.getLogger(__name__)
_LAST_LINES_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: argument list, working folder, the whole environment, and how it is asked to end.

    `postgres_folder` is the data folder by which stray processes are known, when this is Postgres.
    """

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    account: Account | None = None
    stop_signal: int = signal.SIGTERM
    stop_seconds: float = 10.0
    postgres_folder: Path | None = None


class Child:
    """A started command. `record` is a file that names its session as long as anything of it may run."""

    def __init__(self, name: str, command: Command, *, sink: LineSink, warden: Warden, record: Path) -> None:
        self.name = name
        self._warden = warden
        self._record = record
        self._guard = threading.Lock()
        self._buried = False
        self._process = _spawn(command)
        folder = command.postgres_folder
        self._session = Session(
            name=name,
            leader=self._process.pid,
            created=created_at(self._process.pid),
            stop_signal=command.stop_signal,
            stop_seconds=command.stop_seconds,
            postgres_folder=None if folder is None else str(folder),
        )
        warden.watch(self._session)
        record.write_text(json.dumps(self._session.to_json()))
        self._pump = None if self._process.stdout is None else pump(self._process.stdout, sink)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def wait(self, *, seconds: float | None = None) -> int:
        """Wait for its end, then end its children too; the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after `seconds`, and goes on.

        """
        code = self._process.wait(seconds)
        self._bury()
        return code

    def end(self) -> None:
        """Ask it to end, and kill what is left of its session after its time. Idempotent."""
        session = self._session
        ask_to_stop([session])
        wait_for_leaders([session], seconds=session.stop_seconds)
        if session.leader_runs():
            _log.debug("%s did not end within %.1f s and is killed", self.name, session.stop_seconds)
        self._bury()

    def drain_output(self) -> None:
        """Wait a moment until its last lines have reached the log."""
        if self._pump is not None:
            self._pump.join(timeout=_LAST_LINES_SECONDS)

    def _bury(self) -> None:
        with self._guard:
            if self._buried:
                return
            end_session(self._session)
            self._process.wait()
            self.drain_output()
            self._warden.forget(self._session.leader)
            self._record.unlink(missing_ok=True)
            self._buried = True


def end_leftovers(record: Path) -> None:
    """End what is left of the session that this file names: its owner and the warden were both killed."""
    if not record.exists():
        return
    left = Session.from_json(json.loads(record.read_text()))
    if left.members():
        _log.warning("%s: processes of an earlier start are still there and are ended", left.name)
        end_session(left)
    record.unlink(missing_ok=True)


def end_session(session: Session) -> None:
    """Kill every process of the session.

    Raises:
        ServerFailed: some can't be killed.

    """
    if not kill_sessions([session]):
        left = [process.pid for process in session.members()]
        raise ServerFailed(f"{session.name}: processes {left} can't be ended")


def _spawn(command: Command) -> subprocess.Popen[bytes]:
    account = command.account
    return subprocess.Popen(
        command.argv,
        cwd=command.folder,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
    )
