"""Waiting until the engine has nothing running or queued for a name, so that an unload takes nobody's answer away."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from workers.node.engines.ports import Engine
from workers.node.errors import EngineError

GLANCE_S = 0.05


@dataclass(frozen=True, slots=True)
class _Glance:
    at: float
    in_use: frozenset[str] | None


class Drain:
    """Threads that wait at the same time share one question to the engine."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._glance = _Glance(float("-inf"), None)

    def wait(self, name: str, *, seconds: float, check: Callable[[], None] = lambda: None) -> bool:
        """Wait until nothing uses the name, at most so long; whether that was seen.

        An engine of a kind that doesn't tell is not waited for: whoever sent the command has waited before. Nor is one
        that doesn't answer. `check` is called now and then and may raise.
        """
        began = self._clock()
        while self._is_used(name, not_before=began):
            check()
            if self._clock() - began >= seconds:
                return False
            self._sleep(GLANCE_S)
        return True

    def _is_used(self, name: str, *, not_before: float) -> bool:
        """Whether it may have a request: an engine that usually tells, and can't at the moment, may have any."""
        if not self._engine.capabilities.reports_in_use:
            return False
        try:
            in_use = self._look(not_before)
        except EngineError:
            return False
        return in_use is None or name in in_use

    def _look(self, not_before: float) -> frozenset[str] | None:
        with self._lock:
            now = self._clock()
            if self._glance.at < max(not_before, now - GLANCE_S):
                self._glance = _Glance(now, self._engine.in_use())
            return self._glance.in_use
