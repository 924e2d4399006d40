"""The cold path: many requests for a version that is loaded nowhere make one demand and wait together.

A waiting request costs a future and a timer, no task: hundreds may wait while others are answered, and when their
version is there they leave in small groups, so that what arrives in between isn't held up by them.
"""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from gateway.demand import Demand, DemandAnswer, DemandPort, DemandState
from gateway.errors import (
    DiskFull,
    EngineFull,
    GatewayError,
    LoadFailed,
    LoadRefused,
    LoadShed,
    NoCapacity,
    NoNode,
    NotWarmInTime,
    OverQuota,
    Unavailable,
)
from gateway.routing.current import CurrentSnapshot
from gateway.waiting.room import Waiter, WaitingRoom

_ENDS: dict[DemandState, tuple[type[Unavailable], str, int]] = {
    DemandState.SHED: (LoadShed, "Too many loads wait already; this model can't be loaded now.", 5),
    DemandState.NO_NODE: (NoNode, "No node serves this model's base model.", 30),
    DemandState.NO_CAPACITY: (NoCapacity, "All nodes are full; this model can't be loaded now.", 10),
    DemandState.REFUSED: (LoadRefused, "The control plane refused to load this model.", 30),
    DemandState.FAILED: (LoadFailed, "This model could not be loaded.", 30),
}
# What the control plane says more of why, where that is something else than its state alone would mean.
_CAUSES: dict[str, tuple[type[Unavailable], str, int]] = {
    "disk_full": (DiskFull, "The disk that this model would be loaded from is full; it can't be loaded now.", 10),
    "engine_full": (EngineFull, "The engine that would load this model has no place left; it can't be loaded now.", 10),
    "queue_full": (LoadShed, "Too many loads wait already; this model can't be loaded now.", 5),
    "tenant_share": (LoadShed, "Too many of your models wait to be loaded already; this one can't be now.", 5),
    "over_quota": (OverQuota, "Your quota is used up by models that can't leave now; this one can't be loaded.", 10),
}


class _Flight:
    """The one load in flight for a version, and who waits for it.

    `tier` is where the version was when the first of them came: `disk`, `remote`, or empty if it was loaded after all.
    `wait_s` is how long each of them may wait from its arrival, once that was answered. `is_wanted_anyway`: the version
    is asked for although nobody waits.
    """

    __slots__ = ("is_wanted_anyway", "last", "task", "tier", "version_id", "wait_s", "waiters")

    def __init__(self, version_id: UUID) -> None:
        self.version_id = version_id
        self.task: asyncio.Task[None] | None = None
        self.waiters: dict[Waiter, None] = {}
        self.last = DemandState.LOADING
        self.tier: str | None = None
        self.wait_s: float | None = None
        self.is_wanted_anyway = False

    def take(self, answer: DemandAnswer) -> None:
        """Keep what the control plane answered; who may wait less long than it would is told."""
        self.last = answer.state
        if self.tier is None:
            self.tier = "" if answer.state is DemandState.LOADED else answer.tier or "remote"
        if answer.wait_s is not None and answer.wait_s != self.wait_s:
            self.wait_s = answer.wait_s
            for waiter in self.waiters:
                self.limit(waiter)

    def limit(self, waiter: Waiter) -> None:
        """Let the waiter wait as long as it would, and no longer than its tenant's class of service lets it."""
        until = waiter.until if self.wait_s is None else min(waiter.until, waiter.arrived + self.wait_s)
        waiter.end_at(until, lambda: _not_in_time(self.last))

    def left_ms(self) -> int | None:
        """How long the last of them still waits, in milliseconds; None if nobody does."""
        if not self.waiters:
            return None
        return max(0, round((max(waiter.ends_at for waiter in self.waiters) - time.monotonic()) * 1000))


class ColdLoads:
    """Single flight per version. A demand is repeated while anybody waits, since a message can be lost."""

    def __init__(
        self,
        *,
        demand: DemandPort,
        current: CurrentSnapshot,
        is_warm: Callable[[UUID], bool],
        in_flight: Callable[[], tuple[UUID, ...]] = tuple,
        room: WaitingRoom,
        repeat_s: float = 3.0,
        look_s: float = 0.2,
    ) -> None:
        """Look at `is_warm` after each snapshot and every `look_s` seconds; ask again every `repeat_s` seconds.

        `in_flight` says which versions answer now, so that none of them has to make room for another. Who waits has a
        place in `room`.
        """
        self._demand = demand
        self._current = current
        self._is_warm = is_warm
        self._in_flight = in_flight
        self._repeat_s = repeat_s
        self._look_s = look_s
        self._flights: dict[UUID, _Flight] = {}
        self._room = room
        self._watch: asyncio.Task[None] | None = None

    def want(self, version_id: UUID) -> None:
        """Ask for a version that nobody waits for; nothing while it's being asked for already."""
        if version_id not in self._flights:
            self._begin(version_id).is_wanted_anyway = True

    async def wait(
        self, version_id: UUID, *, tenant: str, arrived: float, longest_s: float, is_wanted: Callable[[], bool]
    ) -> str:
        """Return when the version is loaded somewhere, or when `is_wanted` says that it isn't wanted any more.

        What is returned is where it was before: `disk`, `remote`, or empty if it was loaded all the time.

        `arrived` is a time of the monotonic clock. Raises NotWarmInTime after `longest_s` seconds from then, or after
        fewer if the control plane says so; TooManyWaiting at once, or later when another tenant's request needs the
        place more; or what the control plane answered; whatever `is_wanted` raises passes through.
        """
        if not is_wanted():
            return ""
        until = arrived + longest_s
        waiter = Waiter(tenant, arrived=arrived, until=until, is_wanted=is_wanted, gate=self._room.gate)
        self._room.enter(waiter)
        flight = self._flights.get(version_id) or self._begin(version_id)
        flight.waiters[waiter] = None
        flight.limit(waiter)
        try:
            await waiter.done
        finally:
            self._leave(flight, waiter)
        return flight.tier or ""

    def _begin(self, version_id: UUID) -> _Flight:
        flight = self._flights[version_id] = _Flight(version_id)
        flight.task = asyncio.create_task(self._fly(flight), name=f"cold-{version_id}")
        flight.task.add_done_callback(lambda task: self._landed(flight, task))
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_wishes(), name="cold-wishes")
        return flight

    def _leave(self, flight: _Flight, waiter: Waiter) -> None:
        self._room.leave(waiter)
        flight.waiters.pop(waiter, None)
        if not flight.waiters and not flight.is_wanted_anyway and flight.task is not None:
            flight.task.cancel()
            self._forget(flight)

    def _forget(self, flight: _Flight) -> None:
        if self._flights.get(flight.version_id) is flight:
            del self._flights[flight.version_id]

    async def _fly(self, flight: _Flight) -> None:
        """Ask and ask again until the version is warm; raises what the control plane's no comes to."""
        while flight.waiters or flight.is_wanted_anyway:
            flight.is_wanted_anyway = flight.is_wanted_anyway and not flight.waiters
            answer = await self._demand.ask(self._wish(flight))
            flight.take(answer)
            if answer.state in _ENDS:
                kind, message, retry_after_s = _CAUSES.get(answer.code) or _ENDS[answer.state]
                raise kind(message, retry_after_s=answer.retry_after_s or retry_after_s)
            if answer.state is DemandState.LOADED:
                # Loaded there, unknown here: the notification may have been lost.
                self._current.refresh()
            if await self._is_warm_within(flight.version_id, self._repeat_s):
                return
            # Whoever wants it without waiting says so again with the next request.
            flight.is_wanted_anyway = False

    def _landed(self, flight: _Flight, task: asyncio.Task[None]) -> None:
        """The version is warm, or never will be: everybody who waits goes on."""
        self._forget(flight)
        if task.cancelled():
            return
        error = task.exception()
        for waiter in flight.waiters:
            waiter.let_go(lambda: _again(error))

    def _wish(self, flight: _Flight) -> Demand:
        return Demand(
            version_id=flight.version_id,
            waiting=len(flight.waiters),
            deadline_ms=flight.left_ms(),
            in_flight=self._in_flight(),
        )

    async def _is_warm_within(self, version_id: UUID, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._is_warm(version_id):
            left = until - time.monotonic()
            if left <= 0:
                return False
            await asyncio.wait({self._current.change()}, timeout=min(left, self._look_s))
        return True

    async def _watch_wishes(self) -> None:
        """After each snapshot, let those go whose alias points elsewhere by now."""
        while self._flights:
            await asyncio.wait({self._current.change()}, timeout=self._repeat_s)
            for flight in tuple(self._flights.values()):
                for waiter in tuple(flight.waiters):
                    waiter.look()


def _again(error: BaseException | None) -> BaseException | None:
    """An error of one's own for each who gets it: a shared one would grow with every traceback."""
    if not isinstance(error, GatewayError):
        return error
    return type(error)(error.message, param=error.param, retry_after_s=error.retry_after_s)


def _not_in_time(last: DemandState) -> NotWarmInTime:
    if last is DemandState.UNREACHABLE:
        return NotWarmInTime("This model isn't loaded, and the control plane can't be reached.", retry_after_s=10)
    return NotWarmInTime("This model is still being loaded.", retry_after_s=5)
