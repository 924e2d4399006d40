"""Telling an engine that has stopped from one that has much to do: it does nothing though it is asked.

A process that hangs in a lock or a driver ends by itself no more than one that was stopped: its API may go on saying
that all is well, and every request waits for ever. Only a restart helps. The agent's own questions are the proof: the
engine's word of how many requests it has is of its last step.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from workers.node.engines.connection import EngineSlowError
from workers.node.engines.ports import Engine
from workers.node.errors import EngineError


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: `stopped` without a step while the agent waits, or `silent` without any answer, and an engine hangs.

    An engine that is starting may say nothing for as long as a start takes, and one that is `loading` makes no step
    before it has read the files. Zero for `stopped` does without.
    """

    stopped: float
    silent: float
    loading: float


@dataclass(frozen=True, slots=True)
class _Scene:
    """What stays as it is for as long as nothing happens: the life, and its progress; None when it is silent."""

    boot_id: str
    progress: float | None
    is_loading: bool = False


class Standstill:
    """One thread looks; `is_asked` says whether the agent itself waits for an answer; `clock` is a stopwatch."""

    def __init__(
        self,
        engine: Engine,
        patience: Patience,
        *,
        is_asked: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._patience = patience
        self._is_asked = is_asked
        self._clock = clock
        self._lock = Lock()
        self._loads = 0
        self._scene: _Scene | None = None
        self._since = 0.0

    @contextmanager
    def loading(self) -> Iterator[None]:
        """What the agent waits for while in the block is a load; any thread."""
        with self._lock:
            self._loads += 1
        try:
            yield
        finally:
            with self._lock:
                self._loads -= 1

    def look(self, boot_id: str, error: EngineError | None = None) -> str:
        """Look once more; why this life of the engine counts as hung, "" when it doesn't.

        `error` is how it failed to answer just now. One that nobody has heard of yet ("") is left alone, and so is one
        whose port nobody listens on: whoever supervises it starts it again.
        """
        scene = self._look(boot_id, error) if boot_id and self._patience.stopped else None
        if scene is None or scene != self._scene:
            self._scene, self._since = scene, self._clock()
            return ""
        seconds = self._clock() - self._since
        if scene.progress is None:
            return f"it listens, and has not answered for {seconds:.0f} s" if seconds >= self._patience.silent else ""
        if seconds < (self._patience.loading if scene.is_loading else self._patience.stopped):
            return ""
        return f"it was asked{' to load' * scene.is_loading}, and has done nothing for {seconds:.0f} s"

    def _look(self, boot_id: str, error: EngineError | None) -> _Scene | None:
        """None when there is nothing to wait for."""
        if error is not None:
            return _Scene(boot_id, None) if isinstance(error, EngineSlowError) else None
        is_loading = self._loads > 0
        try:
            progress = self._engine.progress() if self._is_asked() else None
        except EngineError as failure:
            return self._look(boot_id, failure)
        return None if progress is None else _Scene(boot_id, progress, is_loading)
