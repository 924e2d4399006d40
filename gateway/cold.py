"""The cold path: many requests for a version that is loaded nowhere make one demand and wait together."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from gateway.demand import DemandPort, DemandState
from gateway.errors import (
    LoadFailed,
    LoadRefused,
    NoCapacity,
    NoNode,
    NotWarmInTime,
    TooManyWaiting,
    Unavailable,
)
from gateway.routing.current import CurrentSnapshot

_ENDS: dict[DemandState, tuple[type[Unavailable], str, int]] = {
    DemandState.NO_NODE: (NoNode, "No node serves this model's base model.", 30),
    DemandState.NO_CAPACITY: (NoCapacity, "All nodes are full; this model can't be loaded now.", 10),
    DemandState.REFUSED: (LoadRefused, "The control plane refused to load this model.", 30),
    DemandState.FAILED: (LoadFailed, "This model could not be loaded.", 30),
}


@dataclass(slots=True)
class _Flight:
    """The one load in flight for a version, and how many wait for it."""

    task: asyncio.Task[DemandState]
    waiters: int = 0
    last: DemandState = DemandState.LOADING


class ColdLoads:
    """Single flight per version. A demand is repeated while anybody waits, since a message can be lost."""

    def __init__(
        self,
        *,
        demand: DemandPort,
        current: CurrentSnapshot,
        is_warm: Callable[[UUID], bool],
        max_waiting: int,
        max_waiting_each: int,
        repeat_s: float = 3.0,
        look_s: float = 0.2,
    ) -> None:
        """Look at `is_warm` after each snapshot and every `look_s` seconds; ask again every `repeat_s` seconds.

        At most `max_waiting` requests wait, of each tenant at most `max_waiting_each`.
        """
        self._demand = demand
        self._current = current
        self._is_warm = is_warm
        self._max_waiting = max_waiting
        self._max_waiting_each = max_waiting_each
        self._repeat_s = repeat_s
        self._look_s = look_s
        self._flights: dict[UUID, _Flight] = {}
        self._waiting_by_tenant: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """How many requests wait for loads."""
        return self._waiting_by_tenant.total()

    async def wait(self, version_id: UUID, *, tenant: str, until: float, is_wanted: Callable[[], bool]) -> None:
        """Return when the version is loaded somewhere, or when `is_wanted` says that it isn't wanted any more.

        `until` is a time of the monotonic clock. Raises NotWarmInTime then, TooManyWaiting at once, or what the
        control plane answered; whatever `is_wanted` raises passes through.
        """
        with self._place(tenant):
            flight = self._join(version_id)
            try:
                while is_wanted():
                    if await self._has_landed(flight, until):
                        return
            finally:
                self._leave(version_id, flight)

    @contextmanager
    def _place(self, tenant: str) -> Iterator[None]:
        """Take a waiting place; one tenant's requests leave some to the others'."""
        if self.waiting >= self._max_waiting or self._waiting_by_tenant[tenant] >= self._max_waiting_each:
            message = "Too many requests wait for models to be loaded."
            raise TooManyWaiting(message, retry_after_s=5)
        self._waiting_by_tenant[tenant] += 1
        try:
            yield
        finally:
            self._waiting_by_tenant[tenant] -= 1
            if not self._waiting_by_tenant[tenant]:
                del self._waiting_by_tenant[tenant]

    async def _has_landed(self, flight: _Flight, until: float) -> bool:
        left = until - time.monotonic()
        if left <= 0:
            raise _not_in_time(flight.last)
        signs: set[asyncio.Future[Any]] = {flight.task, self._current.change()}
        await asyncio.wait(signs, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if not flight.task.done():
            return False
        state = flight.task.result()
        if state in _ENDS:
            kind, message, retry_after_s = _ENDS[state]
            raise kind(message, retry_after_s=retry_after_s)
        return True

    def _join(self, version_id: UUID) -> _Flight:
        flight = self._flights.get(version_id)
        if flight is None or flight.task.done():
            task = asyncio.create_task(self._fly(version_id), name=f"cold-{version_id}")
            flight = self._flights[version_id] = _Flight(task)
        flight.waiters += 1
        return flight

    def _leave(self, version_id: UUID, flight: _Flight) -> None:
        flight.waiters -= 1
        if flight.waiters:
            return
        flight.task.cancel()
        if self._flights.get(version_id) is flight:
            del self._flights[version_id]

    async def _fly(self, version_id: UUID) -> DemandState:
        while True:
            state = (await self._demand.ask(version_id)).state
            self._flights[version_id].last = state
            if state in _ENDS:
                return state
            if state is DemandState.LOADED:
                # Loaded there, unknown here: the notification may have been lost.
                self._current.refresh()
            if await self._is_warm_within(version_id, self._repeat_s):
                return DemandState.LOADED

    async def _is_warm_within(self, version_id: UUID, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._is_warm(version_id):
            left = until - time.monotonic()
            if left <= 0:
                return False
            await asyncio.wait({self._current.change()}, timeout=min(left, self._look_s))
        return True


def _not_in_time(last: DemandState) -> NotWarmInTime:
    if last is DemandState.UNREACHABLE:
        return NotWarmInTime("This model isn't loaded, and the control plane can't be reached.", retry_after_s=10)
    return NotWarmInTime("This model is still being loaded.", retry_after_s=5)
