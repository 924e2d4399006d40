"""What answers a request, a version or a base model, and on which node: after a wait, or in another's place."""

import time
from collections.abc import Callable, Container, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.cold import ColdLoads
from gateway.errors import NodesDown, NotLoaded
from gateway.nodes.fleet import Fleet
from gateway.routing.absences import Absences
from gateway.routing.choose import Candidate, Miss, Places, Wish, base_label, choose, told
from gateway.routing.current import CurrentSnapshot
from gateway.routing.resolve import BaseRoute, Route, Routes, resolve, stable_of
from gateway.routing.snapshot import ColdRule, RoutingSnapshot
from gateway.surface.endpoints import Endpoint
from gateway.trace import Trace
from gateway.waiting.crowd import Crowd
from gateway.wire.connection import Responder
from gateway.wire.headers import header_lines

_RETRY_AFTER_S: Final = 5
_BYTES_PER_TOKEN: Final = 4
_NOBODY: frozenset[str] = frozenset()


@dataclass(slots=True)
class Ask:
    """One authenticated request: where it goes, what it says, how long its body is, and the session it belongs to.

    `session` is the client's own key, empty if it gave none.
    """

    endpoint: Endpoint
    headers: Mapping[str, str] = field(repr=False)
    body: dict[str, object] = field(repr=False)
    size: int = 0
    session: str = ""


@dataclass(slots=True)
class Target:
    """The node to call, and the route that led there; `others` is how many more nodes could answer.

    `snapshot` is the one in which all this is so.
    """

    candidate: Candidate
    route: Route | BaseRoute
    others: int
    snapshot: RoutingSnapshot


class Targets:
    """Finds targets in the snapshot in force, waiting where none is warm."""

    def __init__(
        self,
        *,
        current: CurrentSnapshot,
        absences: Absences,
        fleet: Fleet,
        cold: ColdLoads,
        crowd: Crowd,
        places: Places,
        cold_wait_s: float,
    ) -> None:
        """A request waits `cold_wait_s` seconds at most, counted from its arrival; some tenants' fewer."""
        self._current = current
        self._absences = absences
        self._fleet = fleet
        self._cold = cold
        self._crowd = crowd
        self._places = places
        self._cold_wait_s = cold_wait_s
        self._routes = Routes()

    def find(
        self, ask: Ask, trace: Trace, responder: Responder, *, tried: Container[str] = _NOBODY
    ) -> Target | Coroutine[Any, Any, None]:
        """The target, a node in `tried` only if there is no other; or what to wait for before it's asked for again.

        Raises what `resolve` raises, NotLoaded and NodesDown; the wait what ColdLoads.wait and Crowd.wait raise.
        """
        snapshot = self._current.get()
        key = ask.session or trace.request_id
        route = self._routes.of(snapshot, tenant=trace.tenant, model=ask.body.get("model"), key=key)
        if trace.fallback:
            trace.fallback = trace.tier = ""
        _tell(route, trace)
        found = self._found(snapshot, route)
        chosen = self._choose(snapshot, found, ask, trace, tried)
        if isinstance(chosen, Candidate):
            return _taken(Target(chosen, route, len(found) - 1, snapshot), trace, responder)
        if isinstance(route, BaseRoute):
            raise _all_down(route)
        responder.tell(header_lines({b"x-lorekeeper-version": route.label}))
        if chosen is Miss.CROWDED:
            return self._wait_for_room(snapshot, route, found, ask, trace)
        instead = self._instead(snapshot, route, ask, trace, tried)
        if instead is not None:
            return _taken(instead, trace, responder)
        return self._wait_for_load(snapshot, route, ask, trace)

    def another(self, target: Target, ask: Ask, trace: Trace) -> Candidate | None:
        """Another node that answers now with the same, and whose engine is well; None: there is none."""
        snapshot = self._current.get()
        own = target.candidate.node.name
        found = tuple(one for one in self._found(snapshot, target.route) if one.node.name != own)
        chosen = self._choose(snapshot, found, ask, trace)
        if not isinstance(chosen, Candidate) or self._fleet.states[chosen.node.name].breaker.is_open:
            return None
        return chosen

    def turn_to(self, target: Target, candidate: Candidate, trace: Trace, responder: Responder) -> None:
        """Let the candidate answer in the target's place, and say so."""
        target.candidate = candidate
        _taken(target, trace, responder)

    def _found(self, snapshot: RoutingSnapshot, route: Route | BaseRoute) -> tuple[Candidate, ...]:
        if isinstance(route, Route):
            return self._places.of(snapshot, route.version)
        return self._places.of_base(snapshot, route.base_model)

    def _choose(
        self,
        snapshot: RoutingSnapshot,
        found: tuple[Candidate, ...],
        ask: Ask,
        trace: Trace,
        tried: Container[str] = _NOBODY,
    ) -> Candidate | Miss:
        if not found:
            return Miss.COLD
        token_ms = None
        if snapshot.cold_rules:
            token_ms = snapshot.cold_rule(found[0].node.base_model, trace.tenant).token_ms
        wish = Wish(ask.session or None, ask.size // _BYTES_PER_TOKEN, token_ms)
        if tried:
            found = tuple(candidate for candidate in found if candidate.node.name not in tried) or found
        if self._crowd.has_claims:
            found = tuple(candidate for candidate in found if not self._is_kept_out(candidate))
            if not found:
                return Miss.CROWDED
        return choose(
            found, states=self._fleet.states, wish=wish, now=time.monotonic(), is_absent=self._absences.covers
        )

    def _is_kept_out(self, candidate: Candidate) -> bool:
        residency = candidate.residency
        return self._crowd.keeps_out(candidate.node.name, None if residency is None else residency.version_id)

    def _instead(
        self, snapshot: RoutingSnapshot, route: Route, ask: Ask, trace: Trace, tried: Container[str]
    ) -> Target | None:
        """What answers for a version that is loaded nowhere, by the tenant's class of service; None: wait for it."""
        rule = _rule(snapshot, route)
        if rule.on_cold == "wait":
            return None
        self._cold.want(route.version.id)
        if rule.on_cold == "refuse":
            message = "This model isn't loaded. It has been asked for: try again."
            raise NotLoaded(message, retry_after_s=_RETRY_AFTER_S)
        instead = _other_route(snapshot, route, rule)
        if instead is None:
            return None
        found = self._found(snapshot, instead)
        chosen = self._choose(snapshot, found, ask, trace, tried)
        if not isinstance(chosen, Candidate):
            return None
        trace.fallback = rule.on_cold
        return Target(chosen, instead, len(found) - 1, snapshot)

    async def _wait_for_load(self, snapshot: RoutingSnapshot, route: Route, ask: Ask, trace: Trace) -> None:
        trace.tier = trace.tier or "remote"
        began = time.monotonic()
        try:
            trace.tier = await self._cold.wait(
                route.version.id,
                tenant=trace.tenant,
                arrived=trace.arrived,
                longest_s=self._longest_s(snapshot, route),
                is_wanted=self._is_still_meant(route, ask, trace),
            )
        finally:
            trace.load_s += time.monotonic() - began

    async def _wait_for_room(
        self, snapshot: RoutingSnapshot, route: Route, found: tuple[Candidate, ...], ask: Ask, trace: Trace
    ) -> None:
        await self._crowd.wait(
            route.version.id,
            tenant=trace.tenant,
            arrived=trace.arrived,
            longest_s=self._longest_s(snapshot, route),
            nodes=tuple(candidate.node.name for candidate in found),
            has_room=lambda: self._has_room(route, ask, trace),
            is_wanted=self._is_still_meant(route, ask, trace),
        )

    def _has_room(self, route: Route, ask: Ask, trace: Trace) -> bool:
        snapshot = self._current.get()
        return self._choose(snapshot, self._found(snapshot, route), ask, trace) is not Miss.CROWDED

    def _longest_s(self, snapshot: RoutingSnapshot, route: Route) -> float:
        wait_s = _rule(snapshot, route).wait_s
        return self._cold_wait_s if wait_s is None else min(wait_s, self._cold_wait_s)

    def _is_still_meant(self, route: Route, ask: Ask, trace: Trace) -> Callable[[], bool]:
        """Whether the request still means this version; raises what `resolve` raises."""
        tenant, key = trace.tenant, ask.session or trace.request_id

        def is_meant() -> bool:
            now = resolve(self._current.get(), tenant=tenant, model=ask.body.get("model"), key=key)
            return isinstance(now, Route) and now.version.id == route.version.id

        return is_meant


def _rule(snapshot: RoutingSnapshot, route: Route) -> ColdRule:
    """The rule for the route's base model, which is known by its digest, as a node that serves it names it."""
    digest = route.version.base_digest
    name = next((node.base_model for node in snapshot.nodes.values() if node.base_digest == digest), "")
    return snapshot.cold_rule(name, route.alias.tenant)


def _other_route(snapshot: RoutingSnapshot, route: Route, rule: ColdRule) -> Route | BaseRoute | None:
    if rule.on_cold == "stable":
        is_other = route.side == "canary" and snapshot.serves(route.alias.version_id)
        return stable_of(snapshot, route) if is_other else None
    digest = route.version.base_digest
    name = next((node.base_model for node in snapshot.nodes.values() if node.base_digest == digest), None)
    return None if name is None else BaseRoute(name)


def _tell(route: Route | BaseRoute, trace: Trace) -> None:
    if isinstance(route, Route):
        trace.alias, trace.side, trace.version_id = route.alias.name, route.side, route.version.id
    else:
        trace.alias = route.base_model


def _taken(target: Target, trace: Trace, responder: Responder) -> Target:
    """Say in the trace and in the answer's headers what answers."""
    candidate, route = target.candidate, target.route
    if trace.fallback:
        trace.tier = candidate.tier
        if isinstance(route, Route):
            _tell(route, trace)
    trace.tier = trace.tier or candidate.tier
    trace.node = candidate.node.name
    is_known = trace.tier == candidate.tier and not (isinstance(route, Route) and route.alias.is_shared)
    responder.tell(candidate.lines if is_known else told(_label(route), candidate.node, trace.tier))
    return target


def _label(route: Route | BaseRoute) -> bytes:
    return route.label if isinstance(route, Route) else base_label(route.base_model)


def _all_down(route: BaseRoute) -> NodesDown:
    message = f"No engine that serves '{route.base_model}' answers now."
    return NodesDown(message, retry_after_s=_RETRY_AFTER_S)
