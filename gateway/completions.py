"""The path of a request: admit, find what answers, call the engine, relay, and try again where that is safe."""

import time
from collections.abc import Callable, Coroutine
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from gateway.errors import (
    EngineFault,
    EngineLostVersion,
    EngineUnreachable,
    VersionMismatch,
    VersionRevoked,
)
from gateway.limits import TenantLimits
from gateway.nodes.fleet import Fleet, Flight
from gateway.path.calls import engine_call
from gateway.path.racing import Hedges
from gateway.path.retries import UNTOUCHED, RetryBudget, may_be_sent_again
from gateway.path.targets import Ask, Target, Targets
from gateway.routing.absences import Absences
from gateway.routing.admit import Account, estimate_tokens, prompt_tokens
from gateway.routing.current import CurrentSnapshot
from gateway.routing.snapshot import TenantRules
from gateway.shadow.mirror import Mirror
from gateway.shadow.tap import Tap
from gateway.surface.refusals import refusal
from gateway.trace import Trace
from gateway.upstream.answers import Seen, Usage
from gateway.upstream.ports import EngineAnswer, Upstream
from gateway.upstream.relay import relay
from gateway.wire.connection import Responder
from gateway.wire.replies import JSON_HEADERS

_OK: Final = 200
_LONGEST_REFUSAL: Final = 1024 * 1024
_NO_TOKENS = Usage(0, 0)


@dataclass(slots=True)
class Totals:
    """Counters of this process."""

    version_mismatch: int = 0
    retries: int = 0


@dataclass(slots=True)
class _Tries:
    """What became of one request so far: the nodes that failed, and whether one of them may have worked on it."""

    nodes: AbstractSet[str] = frozenset()
    sent_again: bool = False


@dataclass(slots=True)
class PathParts:
    """What a path is made of."""

    current: CurrentSnapshot
    absences: Absences
    fleet: Fleet
    limits: TenantLimits
    targets: Targets
    upstream: Upstream
    mirror: Mirror
    hedges: Hedges | None = None


class CompletionPath:
    """Serves requests for an engine's paths from the current snapshot."""

    def __init__(self, parts: PathParts, *, cold_wait_s: float) -> None:
        """Try nodes that don't take the request until `cold_wait_s` seconds after its arrival."""
        self._current = parts.current
        self._absences = parts.absences
        self._fleet = parts.fleet
        self._limits = parts.limits
        self._targets = parts.targets
        self._upstream = parts.upstream
        self._mirror = parts.mirror
        self._hedges = parts.hedges
        self._cold_wait_s = cold_wait_s
        self._budget = RetryBudget()
        self.totals = Totals()

    async def serve(self, ask: Ask, *, trace: Trace, responder: Responder) -> None:
        """Answer the request; raises a GatewayError, after the first byte too when the stream breaks."""
        rules = self._current.get().rules[trace.tenant]
        estimated = self._estimate(ask, rules)
        account = self._enter(rules, estimated, responder)
        self._budget.earn()
        tries = _Tries()
        try:
            while True:
                target = self._targets.find(ask, trace, responder, tried=tries.nodes)
                if not isinstance(target, Target):
                    await target
                    continue
                try:
                    await self._attempt(ask, target, trace, responder)
                except EngineFault as error:
                    if not self._tries_again(error, target, tries, trace, responder):
                        raise
                else:
                    return
        finally:
            # What never went to an engine took no tokens, whatever it was estimated at. Pieces are only counted where a
            # limit may want to know: that takes a look through the whole answer.
            usage = trace.usage if trace.sent_at else _NO_TOKENS
            self._limits.leave(
                account,
                estimated=estimated,
                at_least=0 if account.is_unlimited else prompt_tokens(ask.size) + trace.pieces,
                prompt=usage.prompt_tokens,
                completion=usage.completion_tokens,
                engine_ms=trace.engine_s * 1000,
            )

    def _estimate(self, ask: Ask, rules: TenantRules) -> int:
        if rules.tokens_per_minute is None:
            return 0
        mean = self._limits.mean_answer
        return estimate_tokens(ask.body, bounds=ask.endpoint.bounds, body_bytes=ask.size, mean_answer=mean)

    def _enter(self, rules: TenantRules, estimated: int, responder: Responder) -> Account:
        try:
            return self._limits.enter(rules, tokens=estimated)
        finally:
            # Also for who is refused.
            if rules.requests_per_minute is not None or rules.tokens_per_minute is not None:
                responder.annotate(self._limits.headers(rules.tenant))

    def _tries_again(
        self, error: EngineFault, target: Target, tries: _Tries, trace: Trace, responder: Responder
    ) -> bool:
        """Whether another try follows one that failed; counts it if so."""
        self._note(error, target)
        if responder.started or not self._may_retry(error, target, trace, sent_again=tries.sent_again):
            return False
        tries.sent_again = tries.sent_again or not isinstance(error, UNTOUCHED)
        tries.nodes = {*tries.nodes, target.candidate.node.name}
        trace.retries += 1
        self.totals.retries += 1
        return True

    def _may_retry(self, error: EngineFault, target: Target, trace: Trace, *, sent_again: bool) -> bool:
        if isinstance(error, UNTOUCHED):
            # Nodes that fail more slowly than they are passed over would be tried in turn for ever.
            has_time = time.monotonic() < trace.arrived + self._cold_wait_s
            return has_time and (target.candidate.residency is not None or target.others > trace.retries)
        return may_be_sent_again(error, others=target.others, sent_again=sent_again) and self._budget.spend()

    def _note(self, error: EngineFault, target: Target) -> None:
        """Pass over what the engine has just disowned."""
        if isinstance(error, VersionMismatch):
            self.totals.version_mismatch += 1
        residency = target.candidate.residency
        if residency is not None and isinstance(error, (EngineLostVersion, EngineUnreachable, VersionMismatch)):
            self._absences.mark(residency)

    async def _attempt(self, ask: Ask, target: Target, trace: Trace, responder: Responder) -> None:
        candidate = target.candidate
        residency = candidate.residency
        shadow = self._mirror.wants(ask, target, trace)
        flight = self._fleet.enter(candidate.node.name, None if residency is None else residency.version_id)
        trace.mark_sent()
        try:
            if self._hedges is None:
                answer = await self._upstream.send(engine_call(ask, candidate, request_id=trace.request_id))
            else:
                answer, flight = await self._hedges.send(ask, target, flight, trace, responder)
            if shadow is not None:
                answer = shadow.tap = Tap(answer)
            try:
                trace.usage = await self._relay(answer, ask, target, trace, responder)
            finally:
                answer.close()
        except EngineFault as error:
            trace.mark_answered()
            self._fleet.failed(flight, error)
            raise
        except BaseException:
            # The client left, the version was revoked, the engine can't do this: nothing that it could help.
            trace.mark_answered()
            self._fleet.give_up(flight)
            raise
        trace.mark_answered()
        self._fleet.succeed(flight)
        _observe(flight, trace)
        if shadow is not None:
            self._mirror.offer(shadow)

    def _relay(
        self, answer: EngineAnswer, ask: Ask, target: Target, trace: Trace, responder: Responder
    ) -> Coroutine[Any, None, Usage]:
        def begin() -> None:
            self._check_served(target)
            if trace.fallback:
                responder.annotate({b"x-lorekeeper-fallback": trace.fallback.encode()})
            trace.mark_first_byte()

        if answer.status == _OK:
            engine_name, trace.seen = target.candidate.form.answers_as, Seen()
            return relay(answer, engine_name=engine_name, responder=responder, on_first_byte=begin, seen=trace.seen)
        return _refuse(answer, ask, target, responder, begin)

    def _check_served(self, target: Target) -> None:
        """Raise VersionRevoked if the version was withdrawn while a connection or the first token was waited for."""
        residency = target.candidate.residency
        if residency is None or self._current.peek() is target.snapshot:
            return
        version = self._current.get().versions.get(residency.version_id)
        if version is None or not version.may_be_served:
            message = "The version was revoked before it began to answer."
            raise VersionRevoked(message, param="model")


async def _refuse(
    answer: EngineAnswer, ask: Ask, target: Target, responder: Responder, on_first_byte: Callable[[], None]
) -> Usage:
    """Send what the engine says is wrong with the request."""
    body = await answer.whole(_LONGEST_REFUSAL)
    document = refusal(answer.status, body, names=target.candidate.names, model=str(ask.body.get("model")))
    on_first_byte()
    await responder.whole(answer.status, JSON_HEADERS, document)
    return _NO_TOKENS


def _observe(flight: Flight, trace: Trace) -> None:
    """Let the node's pace be known by what this stream took; a whole answer doesn't show its first token."""
    usage = trace.usage
    if not trace.stream or usage.completion_tokens is None:
        return
    first_ms = (trace.first_byte_at - trace.sent_at) * 1000
    pace = flight.state.pace
    pace.observe_decode(
        batch=flight.batch, tokens=usage.completion_tokens, took_ms=trace.last_engine_s * 1000 - first_ms
    )
    pace.observe_prefill(prompt_tokens=usage.prompt_tokens or 0, took_ms=first_ms)
