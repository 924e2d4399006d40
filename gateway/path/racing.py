"""Asking a second node when the first takes long to begin: whoever begins first answers, the other is given up."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.errors import GatewayError
from gateway.nodes.fleet import Fleet, Flight
from gateway.path.calls import engine_call
from gateway.path.hedging import FirstBytes, Hedging
from gateway.path.retries import RetryBudget
from gateway.path.targets import Ask, Target
from gateway.routing.choose import Candidate
from gateway.trace import Trace
from gateway.upstream.ports import EngineAnswer, Upstream
from gateway.wire.connection import Responder

_OK: Final = 200
# What was saved up while nothing was slow may go in one go.
_SAVED: Final = 10.0


class OtherNodes(Protocol):
    """What finds a second node for a request; `Targets` does."""

    def another(self, target: Target, ask: Ask, trace: Trace) -> Candidate | None:
        """A node that has what the target has loaded, other than the target's, and is well; None: there is none."""

    def turn_to(self, target: Target, candidate: Candidate, trace: Trace, responder: Responder) -> None:
        """Let the candidate answer in the target's place."""


@dataclass(slots=True)
class Counts:
    """Second calls of this process, and how many of them answered."""

    sent: int = 0
    won: int = 0


@dataclass(slots=True)
class _Leg:
    """One of a request's calls, on its way since `sent_at`."""

    candidate: Candidate
    flight: Flight
    task: asyncio.Task[EngineAnswer]
    sent_at: float

    @property
    def is_good(self) -> bool:
        """Whether an answer has begun that can be passed on."""
        task = self.task
        return task.done() and not task.cancelled() and task.exception() is None and task.result().status == _OK


class Hedges:
    """Sends calls, some of them twice: at most one second call for a request, and none for one that was tried again."""

    def __init__(self, hedging: Hedging, *, upstream: Upstream, fleet: Fleet, nodes: OtherNodes) -> None:
        """Hedge as the settings say."""
        self._after_s = hedging.after_s
        self._upstream = upstream
        self._fleet = fleet
        self._nodes = nodes
        self._first_bytes = FirstBytes(hedging.quantile)
        self._budget = RetryBudget(earned=hedging.share, at_first=0.0, most=_SAVED)
        self.counts = Counts()

    async def send(
        self, ask: Ask, target: Target, flight: Flight, trace: Trace, responder: Responder
    ) -> tuple[EngineAnswer, Flight]:
        """The answer that began first, and its flight; `target` and `trace` say whose it is. The caller ends both.

        Raises as `Upstream.send` does, for the target's own node, whose flight the caller ends then.
        """
        self._budget.earn()
        pool = target.candidate.node.base_digest
        first = self._leg(ask, target.candidate, flight, trace)
        answer, flight = await self._race(first, ask, target, trace, responder)
        if answer.status == _OK:
            # Of a second call that won, as long as the first would have taken at least.
            self._first_bytes.observe(pool, time.monotonic() - first.sent_at, stream=trace.stream)
        return answer, flight

    async def _race(
        self, first: _Leg, ask: Ask, target: Target, trace: Trace, responder: Responder
    ) -> tuple[EngineAnswer, Flight]:
        second: _Leg | None = None
        try:
            second = await self._second(first, ask, target, trace)
            winner = first if second is None else await _winner(first, second)
            answer = await winner.task
        except BaseException:
            _abandon(first.task)
            if second is not None:
                self._drop(second)
            raise
        if second is not None:
            self._drop(first if winner is second else second)
        if winner is second:
            self.counts.won += 1
            self._nodes.turn_to(target, winner.candidate, trace, responder)
            # Until then the request was in the first one's engine.
            trace.engine_s += winner.sent_at - trace.sent_at
            trace.sent_at = winner.sent_at
        return answer, winner.flight

    async def _second(self, first: _Leg, ask: Ask, target: Target, trace: Trace) -> _Leg | None:
        """The call to another node once the first one takes too long; None: there is none, or no need."""
        after_s = self._after_s
        if after_s is None:
            after_s = self._first_bytes.usual_s(target.candidate.node.base_digest, stream=trace.stream)
        if after_s is None or not target.others or trace.retries:
            return None
        await asyncio.wait({first.task}, timeout=after_s)
        if first.task.done():
            return None
        other = self._nodes.another(target, ask, trace)
        if other is None or not self._budget.spend():
            return None
        self.counts.sent += 1
        residency = other.residency
        flight = self._fleet.enter(other.node.name, None if residency is None else residency.version_id)
        return self._leg(ask, other, flight, trace)

    def _leg(self, ask: Ask, candidate: Candidate, flight: Flight, trace: Trace) -> _Leg:
        call = engine_call(ask, candidate, request_id=trace.request_id)
        return _Leg(candidate, flight, asyncio.ensure_future(self._upstream.send(call)), time.monotonic())

    def _drop(self, leg: _Leg) -> None:
        """It isn't wanted any more: what it says of its engine counts only where it failed by itself."""
        task = leg.task
        error = task.exception() if task.done() and not task.cancelled() else None
        _abandon(task)
        if isinstance(error, GatewayError):
            self._fleet.failed(leg.flight, error)
        else:
            self._fleet.give_up(leg.flight)


async def _winner(first: _Leg, second: _Leg) -> _Leg:
    """Who begins an answer that can be passed on; the first, whatever came of it, where neither does."""
    waiting = {first.task, second.task}
    while waiting:
        _done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for leg in (first, second):
            if leg.is_good:
                return leg
    return first


def _abandon(task: asyncio.Task[EngineAnswer]) -> None:
    """Cancel the call, or close the answer that nobody will read: either way the engine is told to stop."""
    if task.done():
        _close(task)
    else:
        task.add_done_callback(_close)
        task.cancel()


def _close(task: asyncio.Task[EngineAnswer]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()
