"""Changes that come within a window and are applied together, by the thread that came first."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock

from workers.node.errors import EngineAwayError, EngineError

_log = logging.getLogger(__name__)

Apply = Callable[[Mapping[str, str]], Mapping[str, EngineError]]


@dataclass(slots=True, eq=False)
class _Batch:
    items: dict[str, str] = field(default_factory=dict)
    errors: Mapping[str, EngineError] | None = None
    done: Event = field(default_factory=Event)


class Batcher:
    """`apply` gets names with their paths, one batch at a time, and says which of them failed, or raises for all."""

    def __init__(self, apply: Apply, *, window_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait `window_s` seconds for others; a batch that waits for the one before takes in who comes meanwhile."""
        self._apply = apply
        self._window_s = window_s
        self._sleep = sleep
        self._guard = Lock()
        self._applying = Lock()
        self._open: _Batch | None = None

    def submit(self, name: str, path: str, *, alone: bool = False) -> None:
        """Return when it has been applied; raises its own error. `alone` shares its batch with nobody."""
        if alone:
            batch, leads = _Batch({name: path}), True
        else:
            batch, leads = self._join(name, path)
        if leads:
            self._lead(batch, wait_s=0.0 if alone else self._window_s)
        batch.done.wait()
        if batch.errors is None:
            raise EngineAwayError("the change of the engine's adapters was broken off")
        if name in batch.errors:
            raise batch.errors[name]

    @contextmanager
    def between(self) -> Iterator[None]:
        """No batch is applied while in the block; waits for the one that is."""
        with self._applying:
            yield

    def _join(self, name: str, path: str) -> tuple[_Batch, bool]:
        with self._guard:
            leads = self._open is None
            batch = self._open = self._open or _Batch()
            batch.items[name] = path
            return batch, leads

    def _lead(self, batch: _Batch, *, wait_s: float) -> None:
        try:
            self._sleep(wait_s)
            with self._applying:
                self._close(batch)
                _log.info("%d adapters are given to the engine together", len(batch.items))
                batch.errors = self._apply(batch.items)
        except EngineError as error:
            batch.errors = dict.fromkeys(batch.items, error)
        finally:
            self._close(batch)
            batch.done.set()

    def _close(self, batch: _Batch) -> None:
        with self._guard:
            if self._open is batch:
                self._open = None
