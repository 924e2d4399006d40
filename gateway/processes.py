"""Several processes behind one port: a parent that starts them, starts again those that die, and ends them all.

Each has a listening socket of its own, which the parent keeps open: what the kernel has put into a dead process's queue
waits there for its successor. A child whose parent dies ends as if it had been told to.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

_log = logging.getLogger(__name__)

_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
# One that lived so long didn't die of its start.
_STEADY_S = 10.0
_MARGIN_S = 5.0


@dataclass(slots=True)
class _Child:
    """The process in one place: its id, 0 while it's dead; when it began or is to begin, by the monotonic clock."""

    pid: int = 0
    at: float = 0.0
    pause_s: float = _FIRST_PAUSE_S


class Processes:
    """Runs `work` in `count` children."""

    def __init__(
        self, count: int, work: Callable[[int], None], *, patience_s: float, on_end: Callable[[], None]
    ) -> None:
        """Call `work` with the number of the place, 0 to count - 1, in each child; it ends by SIGTERM.

        A child that goes on for `patience_s` seconds and some more after that is killed. `on_end` is called in the
        parent when the end begins.
        """
        self._work = work
        self._patience_s = patience_s
        self._on_end = on_end
        self._children = [_Child() for _ in range(count)]
        self._ends_at: float | None = None
        self._alive, self._parent_end = os.pipe()

    def run(self) -> None:
        """Until SIGTERM or SIGINT has come and every child has ended. Belongs to the main thread."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            while self._ends_at is None or self._living:
                self._start_due(before)
                self._heed(signal.sigtimedwait(_SIGNALS, self._pause()))
                self._bury()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def _living(self) -> list[_Child]:
        return [child for child in self._children if child.pid]

    def _start_due(self, mask: set[int | signal.Signals]) -> None:
        for number, child in enumerate(self._children):
            if not child.pid and self._ends_at is None and child.at <= time.monotonic():
                child.at = time.monotonic()
                child.pid = os.fork()
                if not child.pid:
                    self._be_child(number, mask)

    def _be_child(self, number: int, mask: set[int | signal.Signals]) -> NoReturn:
        status = 1
        try:
            os.close(self._parent_end)
            threading.Thread(target=_end_with_parent, args=(self._alive,), daemon=True).start()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._work(number)
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001 - nothing of the parent's may run in the child; the log has it
            _log.exception("gateway process %d failed", number)
        finally:
            logging.shutdown()
            os._exit(status)

    def _heed(self, told: signal.struct_siginfo | None) -> None:
        if told is not None and told.si_signo != signal.SIGCHLD:
            again = self._ends_at is not None
            self._ends_at = time.monotonic() + (0.0 if again else self._patience_s + _MARGIN_S)
            self._tell(signal.SIGTERM)
            self._on_end()
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self._tell(signal.SIGKILL)

    def _tell(self, what: signal.Signals) -> None:
        for child in self._living:
            os.kill(child.pid, what)

    def _bury(self) -> None:
        for number, child in enumerate(self._children):
            if not child.pid or os.waitpid(child.pid, os.WNOHANG)[0] == 0:
                continue
            lived_s = time.monotonic() - child.at
            child.pause_s = _FIRST_PAUSE_S if lived_s > _STEADY_S else min(child.pause_s * 2, _LONGEST_PAUSE_S)
            child.pid, child.at = 0, time.monotonic() + child.pause_s
            if self._ends_at is None:
                _log.error("gateway process %d ended after %.1f s and is started again", number, lived_s)

    def _pause(self) -> float:
        """Seconds until there is something to do unasked."""
        times = [child.at for child in self._children if not child.pid and self._ends_at is None]
        if self._ends_at is not None:
            times.append(self._ends_at)
        return max(0.0, min(times, default=time.monotonic() + 60.0) - time.monotonic())


def _end_with_parent(alive: int) -> None:
    """Nothing is ever written into this pipe: a read from it returns when its other end is closed."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)
