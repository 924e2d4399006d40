"""What was last seen of the engine's life, and whether its word of being well is to be believed."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from workers.node.engines.ports import Boot, Engine
from workers.node.errors import EngineError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sight:
    boot: Boot
    at: float


class EngineWatch:
    """Threads share it; `clock` is a stopwatch."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._lock = Lock()
        self._sight: _Sight | None = None
        self._last_id = ""
        self._doubt: tuple[str, str] | None = None

    @property
    def last_id(self) -> str:
        """The boot id that was seen last, "" before the first."""
        return self._last_id

    def look(self) -> Boot:
        """Ask the engine; `EngineError` when it doesn't answer."""
        try:
            boot = self._engine.boot()
        except EngineError:
            self._sight = None
            raise
        if self.doubt_of(boot.id):
            boot = Boot(boot.id, healthy=False)
        with self._lock:
            self._sight, self._last_id = _Sight(boot, self._clock()), boot.id
        return boot

    def recent(self, *, max_age_s: float) -> Boot:
        """What was seen in the last so many seconds, if it was well then, or what is seen now."""
        sight = self._sight
        is_good = sight is not None and sight.boot.healthy and not self.doubt_of(sight.boot.id)
        if sight is not None and is_good and self._clock() - sight.at < max_age_s:
            return sight.boot
        return self.look()

    def doubt(self, boot_id: str, why: str) -> None:
        """Count this life of the engine as not well, whatever it says, until it is trusted again."""
        if self.doubt_of(boot_id) != why:
            _log.error("the engine says it is well and is not: %s", why)
        self._doubt = (boot_id, why)

    def trust(self) -> None:
        if self._doubt is not None:
            _log.warning("the engine is well again")
        self._doubt = None

    def doubt_of(self, boot_id: str) -> str:
        """Why this life of the engine is not believed, "" when it is."""
        doubt = self._doubt
        return doubt[1] if doubt is not None and doubt[0] == boot_id else ""
