"""The path of a completion request: resolve, choose, wait if cold, call the engine, relay, retry where that's safe."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from gateway.cold import ColdLoads
from gateway.errors import EngineDropped, EngineLostVersion, EngineUnreachable, VersionMismatch, VersionRevoked
from gateway.routing.absences import Absences
from gateway.routing.choose import Candidate, candidates, choose
from gateway.routing.current import CurrentSnapshot
from gateway.routing.resolve import Route, resolve
from gateway.trace import Trace
from gateway.upstream.ports import EngineCall, Upstream
from gateway.upstream.relay import relay
from gateway.wire.asgi import Responder

# What else a client sends stays here: an engine's headers are none of its business.
_FORWARDED = ("accept", "traceparent", "tracestate")
# Printable ASCII without blanks at its ends: with others the call fails as if the engine had.
_FORWARDABLE = re.compile(r"[!-~](?:[ -~]{0,1022}[!-~])?")
_DROPS_ALLOWED = 1


@dataclass(slots=True)
class Totals:
    """Counters of this process."""

    version_mismatch: int = 0
    in_flight: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def flying(self, node: str) -> Iterator[None]:
        """Count a request as being on its way through `node`."""
        self.in_flight[node] += 1
        try:
            yield
        finally:
            self.in_flight[node] -= 1


@dataclass(frozen=True, slots=True)
class Ask:
    """One authenticated request: its path on the engine, headers and parsed body."""

    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: dict[str, object] = field(repr=False)


class CompletionPath:
    """Serves completion requests from the current snapshot."""

    def __init__(
        self, *, current: CurrentSnapshot, absences: Absences, cold: ColdLoads, upstream: Upstream, cold_wait_s: float
    ) -> None:
        """A request may wait `cold_wait_s` seconds for its version, counted from its arrival."""
        self._current = current
        self._absences = absences
        self._cold = cold
        self._upstream = upstream
        self._cold_wait_s = cold_wait_s
        self.totals = Totals()

    async def serve(self, ask: Ask, *, trace: Trace, responder: Responder) -> None:
        """Answer the request; raises a GatewayError, after the first byte too when the stream breaks."""
        drops = 0
        while True:
            candidate = await self._candidate(ask, trace, responder)
            try:
                await self._attempt(ask, candidate, trace, responder)
            except (EngineLostVersion, EngineUnreachable):
                self._absences.mark(candidate.residency)
                # Nodes that fail more slowly than they are passed over would be tried in turn for ever.
                if time.monotonic() >= trace.arrived + self._cold_wait_s:
                    raise
            except EngineDropped:
                # Once: an idle connection may just have been closed at the other end. The request may also be what
                # kills the engine, so it isn't tried on node after node.
                drops += 1
                if drops > _DROPS_ALLOWED:
                    self._absences.mark(candidate.residency)
                    raise
            except VersionMismatch:
                self.totals.version_mismatch += 1
                self._absences.mark(candidate.residency)
                raise
            else:
                return

    async def _candidate(self, ask: Ask, trace: Trace, responder: Responder) -> Candidate:
        """The node to call, after waiting for a load if it must be."""
        model = ask.body.get("model")
        while True:
            route = resolve(self._current.get(), tenant=trace.tenant, model=model)
            trace.route, trace.alias = route, route.alias.name
            responder.annotate({"x-lorekeeper-version": route.version.label})
            candidate = self._choose(route)
            if candidate is not None:
                trace.tier, trace.node = trace.tier or "gpu", candidate.node.name
                responder.annotate({"x-lorekeeper-node": candidate.node.name, "x-lorekeeper-tier": trace.tier})
                return candidate
            trace.tier = "cold"
            await self._wait(route.version.id, model, trace)

    def _choose(self, route: Route) -> Candidate | None:
        found = candidates(self._current.get(), route.version, is_absent=self._absences.covers)
        return choose(found, in_flight=self.totals.in_flight)

    async def _wait(self, version_id: UUID, model: object, trace: Trace) -> None:
        def is_wanted() -> bool:
            return resolve(self._current.get(), tenant=trace.tenant, model=model).version.id == version_id

        began = time.monotonic()
        try:
            await self._cold.wait(
                version_id, tenant=trace.tenant, until=trace.arrived + self._cold_wait_s, is_wanted=is_wanted
            )
        finally:
            trace.load_s += time.monotonic() - began

    async def _attempt(self, ask: Ask, candidate: Candidate, trace: Trace, responder: Responder) -> None:
        def begin() -> None:
            self._check_served(candidate.residency.version_id)
            trace.mark_first_byte()

        call = engine_call(ask, candidate, request_id=trace.request_id)
        trace.mark_sent()
        with self.totals.flying(candidate.node.name):
            async with self._upstream.open(call) as answer:
                trace.usage = await relay(
                    answer,
                    engine_name=candidate.residency.engine_name,
                    responder=responder,
                    on_first_byte=begin,
                )

    def _check_served(self, version_id: UUID) -> None:
        """Raise VersionRevoked if the version was withdrawn while a connection or the first token was waited for."""
        version = self._current.get().versions.get(version_id)
        if version is None or not version.may_be_served:
            message = "The version was revoked before it began to answer."
            raise VersionRevoked(message, param="model")


def engine_call(ask: Ask, candidate: Candidate, *, request_id: str) -> EngineCall:
    """The call to the engine: the client's body with the model replaced by the version's engine name."""
    headers = {name: ask.headers[name] for name in _FORWARDED if _FORWARDABLE.fullmatch(ask.headers.get(name, ""))}
    body = {**ask.body, "model": candidate.residency.engine_name}
    return EngineCall(
        url=candidate.node.engine_url.rstrip("/") + ask.path,
        headers={**headers, "content-type": "application/json", "x-request-id": request_id},
        body=json.dumps(body, separators=(",", ":")).encode(),
    )


def is_warm(current: CurrentSnapshot, absences: Absences, version_id: UUID) -> bool:
    """Whether some node can answer with the version now."""
    snapshot = current.get()
    version = snapshot.versions.get(version_id)
    return version is not None and bool(candidates(snapshot, version, is_absent=absences.covers))
