"""A process that dies at a chosen step: before a call to the store, or before a transaction is committed.

Two ways to die. ``Killed`` is thrown in this process, which is quick, but still lets ``finally`` run. ``dies`` runs the
work in a process of its own that sends itself SIGKILL, before any statement, any change of a file, any commit or any
signature: slower, and nothing is cleaned up.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from registry.signing.local_key import LocalKeySigner
from registry.stores.folder import FolderStore

_STORE_CALLS = (
    *("accept_put", "put_stream", "stat", "open", "delete"),
    *("start_parts", "list_parts", "complete_parts", "abort_parts", "remove_abandoned"),
)


class Killed(BaseException):
    """Nothing in the code catches it, as nothing in a process catches SIGKILL."""


class Steps:
    """Counts the steps of whatever runs, and kills at the one that it was told of."""

    def __init__(self, kill_before: int) -> None:
        self.kill_before = kill_before
        self.count = 0

    def step(self) -> None:
        self.count += 1
        if self.count == self.kill_before:
            # As the server sees it: what was not committed is rolled back.
            connection.close()
            raise Killed


def count_store_calls(patch: pytest.MonkeyPatch, steps: Steps) -> None:
    for name in _STORE_CALLS:
        patch.setattr(FolderStore, name, _mortal(getattr(FolderStore, name), steps))


def count_commits(patch: pytest.MonkeyPatch, steps: Steps) -> None:
    commit = BaseDatabaseWrapper.commit

    def mortal(self: BaseDatabaseWrapper) -> None:
        steps.step()
        commit(self)

    patch.setattr(BaseDatabaseWrapper, "commit", mortal)


def _mortal(act: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
    @wraps(act)
    def mortal(*args: Any, **kwargs: Any) -> Any:
        steps.step()
        return act(*args, **kwargs)

    return mortal


_FILE_EVENTS: Final = frozenset({"os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"})


def dies(act: Callable[[], object], *, before_step: int) -> bool:
    """Run ``act`` in a process of its own that is killed by SIGKILL before that step; False if it came to its end."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        _act_and_leave(act, before_step)
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert status == 0, f"the work failed by itself (status {status}) when killed before step {before_step}"
    return False


def _act_and_leave(act: Callable[[], object], before_step: int) -> None:
    """Never returns, so that nothing of the test's own runs twice."""
    status = 1
    try:
        _arm(_SelfKill(before_step))
        act()
        status = 0
    except BaseException:  # noqa: BLE001  the parent asserts on the status
        traceback.print_exc()
    finally:
        os._exit(status)


class _SelfKill:
    def __init__(self, before_step: int) -> None:
        self._left = before_step

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.step()
        return execute(*args)

    def event(self, name: str, args: tuple[Any, ...]) -> None:
        writes = name == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or name in _FILE_EVENTS:
            self.step()


def _arm(killer: _SelfKill) -> None:
    """For the rest of this process: nothing here is undone."""
    commit, sign = BaseDatabaseWrapper.commit, LocalKeySigner.sign

    def mortal_commit(self: BaseDatabaseWrapper) -> None:
        killer.step()
        commit(self)
        killer.step()

    def mortal_sign(self: LocalKeySigner, payload: bytes) -> bytes:
        killer.step()
        return sign(self, payload)

    BaseDatabaseWrapper.commit = mortal_commit  # type: ignore[method-assign]
    LocalKeySigner.sign = mortal_sign  # type: ignore[method-assign]
    connection.execute_wrappers.append(killer.statement)
    sys.addaudithook(killer.event)
