"""Asking the candidate what the stable version was asked, within a budget, once its answer is done.

A shadow never holds up or fails the request that it mirrors: it begins after the last byte of that one's answer, has
no part in its errors, and gives way. It goes only to a node that has the candidate loaded and a slot for it; nothing is
loaded for it. Where the budget is used up, it's left out and counted.
"""

import asyncio
import functools
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from gateway.errors import EngineUnreadable, GatewayError
from gateway.nodes.fleet import Fleet
from gateway.path.calls import engine_call
from gateway.path.targets import Ask, Target
from gateway.records.shapes import RequestRecord, ShadowRecord
from gateway.routing.absences import Absences
from gateway.routing.choose import Candidate, Places, Wish, choose
from gateway.routing.current import CurrentSnapshot
from gateway.routing.resolve import Route, shadow_of
from gateway.routing.snapshot import Version
from gateway.shadow.answers import Said, said_by
from gateway.shadow.compare import agreement
from gateway.shadow.tap import MOST_BYTES, Tap
from gateway.surface.refusals import refusal
from gateway.trace import Trace
from gateway.upstream.answers import Usage, check_json_answer
from gateway.upstream.ports import Upstream

_log = logging.getLogger(__name__)

_LONGEST_S: Final = 120.0
_OK: Final = 200
_REFUSED: Final = "engine_refused"
_STREAM_FIELDS: Final = ("stream", "stream_options")


class ShadowRecords(Protocol):
    """Where the records of shadows go."""

    def add(self, record: RequestRecord) -> None:
        """Queue the record of the mirrored request."""

    def add_shadow(self, record: ShadowRecord) -> None:
        """Queue the comparison."""


@dataclass(slots=True)
class Budget:
    """How much shadows may take.

    `most` of them run at once in this process; of the requests of a node they are at most the share `of_node`, or one.
    """

    most: int = 8
    of_node: float = 0.1


@dataclass(slots=True)
class Shadow:
    """A request that was drawn to be mirrored: to which version, what was asked, and what the client got."""

    ask: Ask
    trace: Trace
    route: Route
    version: Version
    tap: Tap | None = None
    stable_ms: int = 0


@dataclass(slots=True)
class Counts:
    """What became of the requests that were drawn."""

    compared: int = 0
    failed: int = 0
    left_out: int = 0


@dataclass(slots=True)
class _Answer:
    """The candidate's: how it went."""

    status: int = 0
    error_kind: str = ""
    said: Said | None = None
    usage: Usage = field(default_factory=Usage)
    took_ms: int = 0


class Mirror:
    """Draws requests, and mirrors them."""

    def __init__(
        self,
        *,
        current: CurrentSnapshot,
        absences: Absences,
        places: Places,
        fleet: Fleet,
        upstream: Upstream,
        records: ShadowRecords,
        budget: Budget,
    ) -> None:
        """Begin with nothing mirrored."""
        self._current = current
        self._absences = absences
        self._places = places
        self._fleet = fleet
        self._upstream = upstream
        self._records = records
        self._budget = budget
        self._running: set[asyncio.Task[None]] = set()
        self._by_node: dict[str, int] = {}
        self.counts = Counts()

    def wants(self, ask: Ask, target: Target, trace: Trace) -> Shadow | None:
        """Whether this request is one of the sampled ones; decided before it's sent, so that its answer is kept.

        Where the budget is used up already, it's left out at once: no answer is kept that nobody would compare.
        """
        route = target.route
        if not isinstance(route, Route) or route.alias.split is None or route.side != "stable" or trace.fallback:
            return None
        if not ask.endpoint.generates:
            return None
        version = shadow_of(self._current.get(), route, request_id=trace.request_id)
        if version is None:
            return None
        if len(self._running) < self._budget.most:
            return Shadow(ask, trace, route, version)
        if not trace.retries:
            self.counts.left_out += 1
        return None

    def offer(self, shadow: Shadow) -> None:
        """The request has been answered: mirror it now, or leave it out."""
        tap = shadow.tap
        if tap is None or tap.status != _OK:
            return
        candidate = self._node_for(shadow.version) if self._is_still_meant(shadow) else None
        kept = tap.kept()
        if candidate is None or kept is None or len(self._running) >= self._budget.most:
            self.counts.left_out += 1
            return
        shadow.stable_ms = _ms(time.monotonic() - shadow.trace.sent_at)
        name = candidate.node.name
        self._by_node[name] = self._by_node.get(name, 0) + 1
        task = asyncio.create_task(self._mirror(shadow, candidate, kept), name="shadow")
        self._running.add(task)
        task.add_done_callback(functools.partial(self._ended, name))

    def _is_still_meant(self, shadow: Shadow) -> bool:
        """Whether it would be drawn now: meanwhile its version may have been revoked, or its tenant opted out."""
        version = shadow_of(self._current.get(), shadow.route, request_id=shadow.trace.request_id)
        return version is not None and version.id == shadow.version.id

    async def close(self) -> None:
        """Give up what still runs."""
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, node: str, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._by_node[node] -= 1
        if not self._by_node[node]:
            del self._by_node[node]
        if not task.cancelled() and task.exception() is not None:
            _log.error("a shadow failed in the gateway itself", exc_info=task.exception())

    def _node_for(self, version: Version) -> Candidate | None:
        found = self._places.of(self._current.get(), version)
        chosen = choose(
            found,
            states=self._fleet.states,
            wish=Wish(),
            now=time.monotonic(),
            is_absent=self._absences.covers,
        )
        if not isinstance(chosen, Candidate):
            return None
        name = chosen.node.name
        state = self._fleet.states[name]
        # A trial of a node that failed is for a request that somebody waits for.
        has_share = self._by_node.get(name, 0) < max(1.0, state.in_flight * self._budget.of_node)
        return chosen if has_share and not state.breaker.is_open else None

    async def _mirror(self, shadow: Shadow, candidate: Candidate, kept: bytes) -> None:
        at = datetime.now(UTC)
        answer = await self._ask(shadow, candidate)
        self._record(shadow, candidate, answer, at)
        self._compare(shadow, answer, kept, at)

    async def _ask(self, shadow: Shadow, candidate: Candidate) -> _Answer:
        flight = self._fleet.enter(candidate.node.name, shadow.version.id)
        began = time.monotonic()
        answer = _Answer()
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self._fill(answer, shadow, candidate)
        except TimeoutError:
            answer.error_kind = "engine_timeout"
            self._fleet.give_up(flight)
        except GatewayError as error:
            answer.error_kind = error.code
            self._fleet.failed(flight, error)
        except BaseException:
            self._fleet.give_up(flight)
            raise
        else:
            self._fleet.succeed(flight)
        answer.took_ms = _ms(time.monotonic() - began)
        return answer

    async def _fill(self, answer: _Answer, shadow: Shadow, candidate: Candidate) -> None:
        body = {key: value for key, value in shadow.ask.body.items() if key not in _STREAM_FIELDS}
        ask = Ask(shadow.ask.endpoint, shadow.ask.headers, body)
        call = engine_call(ask, candidate, request_id=f"{shadow.trace.request_id}-shadow")
        opened = await self._upstream.send(call)
        try:
            answer.status = opened.status
            said = await opened.whole(MOST_BYTES)
        finally:
            opened.close()
        if opened.status != _OK:
            # Raises where that is the engine's doing, as it does for who asks for himself.
            refusal(opened.status, said, names=candidate.names, model=shadow.trace.alias)
            answer.error_kind = _REFUSED
            return
        answer.usage = check_json_answer(said, candidate.form.answers_as)
        answer.said = said_by(said, is_stream=False)
        if answer.said is None:
            message = "The engine's answer says nothing that could be compared."
            raise EngineUnreadable(message)

    def _compare(self, shadow: Shadow, answer: _Answer, kept: bytes, at: datetime) -> None:
        tap, trace = shadow.tap, shadow.trace
        stable = said_by(kept, is_stream=tap is not None and tap.is_stream)
        share = None if stable is None or answer.said is None else agreement(stable, answer.said)
        if share is None:
            self.counts.failed += 1
        else:
            self.counts.compared += 1
        self._records.add_shadow(
            ShadowRecord(
                at=at,
                request_id=trace.request_id,
                tenant=trace.tenant,
                alias=trace.alias,
                stable_version_id=shadow.route.version.id,
                candidate_version_id=shadow.version.id,
                agreement=share,
                stable_tokens=None if stable is None else stable.tokens,
                candidate_tokens=None if answer.said is None else answer.said.tokens,
                stable_ms=shadow.stable_ms,
                candidate_ms=answer.took_ms,
                error_kind=answer.error_kind,
            )
        )

    def _record(self, shadow: Shadow, candidate: Candidate, answer: _Answer, at: datetime) -> None:
        trace = shadow.trace
        self._records.add(
            RequestRecord(
                at=at,
                request_id=trace.request_id,
                tenant=trace.tenant,
                alias=trace.alias,
                version_id=shadow.version.id,
                node=candidate.node.name,
                tier=candidate.tier,
                status=answer.status,
                error_kind=answer.error_kind,
                queue_ms=0,
                load_ms=0,
                ttft_ms=answer.took_ms,
                total_ms=answer.took_ms,
                prompt_tokens=answer.usage.prompt_tokens,
                completion_tokens=answer.usage.completion_tokens,
                stream=False,
                path=trace.path,
                is_shadow=True,
                engine_ms=answer.took_ms,
            )
        )


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))
