"""Restarting one process of a running stack from outside of it: its node agent's way to restart the engine."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.system.lock import holder_of
from deploy.embedded.system.sessions import Session, ask_to_stop, kill_sessions, wait_for_leaders

if TYPE_CHECKING:
    from pathlib import Path

# The stack starts a process that ends again and again after 10 s at the latest.
START_SECONDS = 60.0
_POLL_SECONDS = 0.05


def restart_process(data: Path, name: str, *, seconds: float = START_SECONDS) -> None:
    """End the process, and return when the stack that runs in this folder has started it again.

    It is asked to end, and killed with all its children when it doesn't. It may not be ready for a while yet.

    Raises:
        EmbeddedError: no stack runs there, it has no such process now, or it didn't start it again in time.

    """
    if holder_of(data / "lock") is None:
        raise EmbeddedError(f"no stack runs in {data}")
    record = data / "processes" / name / f"{name}.session.json"
    old = _session(record)
    if old is None or not old.leader_runs():
        raise EmbeddedError(f"no process {name} runs in {data}")
    ask_to_stop([old])
    wait_for_leaders([old], seconds=old.stop_seconds)
    kill_sessions([old])
    _wait_for_another(record, old, seconds=seconds)


def _wait_for_another(record: Path, old: Session, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now = _session(record)
        if now is not None and (now.leader, now.created) != (old.leader, old.created):
            return
        time.sleep(_POLL_SECONDS)
    raise EmbeddedError(f"{old.name} was not started again within {seconds:.0f} s")


def _session(record: Path) -> Session | None:
    """Whom the record names; None when there is none, or it is just being written."""
    try:
        return Session.from_json(json.loads(record.read_text()))
    except (OSError, ValueError):
        return None
