"""Process sessions: every process of the stack leads one, so that all its children can be found and ended with it.

Postgres puts each backend into a session of its own, so its session also names the data folder: every `postgres`
process that runs there belongs to it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Session:
    """One running process and all that it starts.

    `leader` is its pid and session id, `created` when it was started (seconds since the epoch, to recognise a
    recycled pid), `stop_signal` the signal that asks it to end and `stop_seconds` how long it may take.
    """

    name: str
    leader: int
    created: float
    stop_signal: int = signal.SIGTERM
    stop_seconds: float = 10.0
    postgres_folder: str | None = None

    @classmethod
    def from_json(cls, entry: Mapping[str, object]) -> Self:
        return cls(**entry)  # type: ignore[arg-type]  # written by to_json below

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    def leader_runs(self) -> bool:
        process = _running(self.leader)
        return process is not None and _created(process) == self.created

    def members(self) -> list[psutil.Process]:
        """Every process of this session that still runs, the leader included; empty when its pid was recycled."""
        leader = _running(self.leader)
        if leader is not None and _created(leader) != self.created:
            return self._backends()
        found = {process.pid: process for process in _in_session(self.leader)}
        found.update({process.pid: process for process in self._backends()})
        return list(found.values())

    def _backends(self) -> list[psutil.Process]:
        return [] if self.postgres_folder is None else postgres_in(Path(self.postgres_folder))


def created_at(pid: int) -> float:
    """When the process with this pid was started; 0 when there is none."""
    process = _running(pid)
    return 0.0 if process is None else _created(process)


def postgres_in(folder: Path) -> list[psutil.Process]:
    """Every `postgres` process whose data folder is this one."""
    inside = folder.resolve()
    return [process for process in psutil.process_iter(["name"]) if _serves(process, inside)]


def ask_to_stop(sessions: Iterable[Session]) -> None:
    """Send each leader that still runs its own stop signal."""
    for session in sessions:
        if session.leader_runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(session.leader, session.stop_signal)


def kill_sessions(sessions: Iterable[Session], *, seconds: float = 5.0) -> bool:
    """SIGKILL every member of these sessions and wait until none is left; whether that was so in time."""
    wanted = list(sessions)
    deadline = time.monotonic() + seconds
    while members := [process for session in wanted for process in session.members()]:
        for process in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def wait_for_leaders(sessions: Iterable[Session], *, seconds: float) -> None:
    """Wait until all leaders have ended, but no longer than `seconds`."""
    deadline = time.monotonic() + seconds
    left = list(sessions)
    while left and time.monotonic() < deadline:
        left = [session for session in left if session.leader_runs()]
        time.sleep(_POLL_SECONDS)


def _running(pid: int) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.NoSuchProcess:
        return None


def _created(process: psutil.Process) -> float:
    try:
        return float(process.create_time())
    except psutil.NoSuchProcess:
        return 0.0


def _in_session(leader: int) -> list[psutil.Process]:
    members: list[psutil.Process] = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            process = _running(pid) if os.getsid(pid) == leader else None
            if process is not None:
                members.append(process)
    return members


def _serves(process: psutil.Process, folder: Path) -> bool:
    try:
        return (
            process.name() == "postgres"
            and process.status() != psutil.STATUS_ZOMBIE
            and Path(process.cwd()).resolve() == folder
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
        return False
