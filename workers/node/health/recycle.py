"""Restarting the engine when web asks for it, by the operator's way: once for each life, and not again too soon."""

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread

from workers.node.durable import read_json, write_json
from workers.node.engines.ports import Restarter
from workers.node.errors import EngineError

_log = logging.getLogger(__name__)

# A restart that did nothing, or could not be begun, is tried again after so long.
AGAIN_S = 300.0
# A life that has only begun is left alone for so long after the restart before, whatever web asks.
PAUSE_S = 30.0


class Recycler:
    """Notes each restart on disk at `path`, so that a restarted agent doesn't restart the engine once more."""

    def __init__(self, restarter: Restarter, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._restarter = restarter
        self._path = path
        self._clock = clock
        self._lock = Lock()
        self._thread: Thread | None = None
        self._boot_id, self._at = _read(path)

    @property
    def available(self) -> bool:
        """Whether the operator gave a way."""
        return self._restarter.available

    def ask(self, wanted: object, *, boot_id: str) -> bool:
        """Restart the engine if this life is the one that is to end; whether that is begun. Returns at once."""
        if not isinstance(wanted, str) or wanted != boot_id or not self.available:
            return False
        with self._lock:
            if self._is_at_work() or self._is_underway(boot_id) or self._since() < PAUSE_S:
                return False
            self._boot_id, self._at = boot_id, self._clock()
            self._note()
            self._thread = Thread(target=self._restart, name="recycle", daemon=True)
            self._thread.start()
        return True

    def is_restarting(self, boot_id: str) -> bool:
        """Whether this life of the engine is being ended: nothing is loaded into it any more."""
        with self._lock:
            return self._is_underway(boot_id)

    def join(self, timeout_s: float) -> None:
        """Wait for a restart that was begun."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _is_underway(self, boot_id: str) -> bool:
        return boot_id == self._boot_id and (self._is_at_work() or self._since() < AGAIN_S)

    def _is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _since(self) -> float:
        """Seconds since the last restart; without end where the clock was set back meanwhile."""
        seconds = self._clock() - self._at
        return seconds if seconds >= 0 else math.inf

    def _note(self) -> None:
        """A disk that is full must not keep a poisoned engine alive."""
        try:
            write_json(self._path, {"boot_id": self._boot_id, "at": self._at})
        except OSError:
            _log.exception("the restart can't be noted on disk")

    def _restart(self) -> None:
        try:
            self._restarter.restart()
        except (EngineError, OSError):
            _log.exception("the engine could not be restarted; once more in %g s", AGAIN_S)


def _read(path: Path) -> tuple[str, float]:
    try:
        value = read_json(path)
        return (str(value["boot_id"]), float(value["at"])) if value else ("", 0.0)
    except (ValueError, KeyError, TypeError):
        _log.exception("the note of the last restart is damaged")
        return "", 0.0
