"""The warden ends what its owner started when the owner is gone, however it went.

It is one small process in a session of its own (a Ctrl-C on the terminal or a kill of the owner's process group
doesn't reach it) that reads, line by line, which sessions its owner runs. The end of that pipe is the end of the
owner: the kernel closes it even after SIGKILL. Then the warden asks every session to stop, and kills what is left.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.embedded.system.sessions import Session, ask_to_stop, kill_sessions, wait_for_leaders

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROOT = Path(__file__).resolve().parents[2]
_GRACE_SECONDS = 3.0


class Warden:
    """The owner's side. Thread-safe; a warden that was killed is replaced at the next call."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._sessions: dict[int, Session] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, session: Session) -> None:
        """End this session when the owner is gone."""
        with self._guard:
            self._sessions[session.leader] = session
            self._tell([{"watch": session.to_json()}])

    def forget(self, leader: int) -> None:
        """Its session has ended, or was ended by the owner."""
        with self._guard:
            if self._sessions.pop(leader, None) is not None:
                self._tell([{"forget": leader}])

    def ensure_alive(self) -> None:
        """Replace the warden process if it has died."""
        with self._guard:
            if self._sessions:
                self._tell([])

    def close(self) -> None:
        """Let the warden process end; whatever it still watches is ended by it first."""
        with self._guard:
            process, self._process = self._process, None
            self._sessions.clear()
        if process is not None:
            _let_go(process)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _tell(self, lines: list[dict[str, object]]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._replace()
            return
        try:
            _write(self._process, lines)
        except BrokenPipeError:
            self._replace()

    def _replace(self) -> None:
        if self._process is not None:
            _let_go(self._process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "deploy.embedded.warden"],
            bufsize=0,
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _write(self._process, [{"watch": session.to_json()} for session in self._sessions.values()])


def _write(process: subprocess.Popen[bytes], lines: list[dict[str, object]]) -> None:
    if process.stdin is not None:
        process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def _let_go(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def follow(lines: Iterable[str]) -> list[Session]:
    """Read what the owner says until it is gone, and return the sessions that it left, in the order of their start."""
    sessions: dict[int, Session] = {}
    for line in lines:
        said = json.loads(line)
        if "watch" in said:
            session = Session.from_json(said["watch"])
            sessions[session.leader] = session
        else:
            sessions.pop(said["forget"], None)
    return list(sessions.values())


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    left = follow(sys.stdin)
    ask_to_stop(reversed(left))
    wait_for_leaders(left, seconds=_GRACE_SECONDS)
    kill_sessions(left)


if __name__ == "__main__":
    main()
