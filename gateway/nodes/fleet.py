"""What this process knows of the nodes: the requests it has there, and how their engines do."""

import time
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from gateway.errors import EngineBusy, EngineFault, EngineLostVersion, GatewayError
from gateway.routing.breaker import BreakerState
from gateway.routing.choose import NodeState

# An engine that is busy, or has forgotten a version, works as it should.
_BLAMELESS = (EngineBusy, EngineLostVersion)


class NodeStates(dict[str, NodeState]):
    """The state of each node by its name; one that wasn't seen before is idle and well."""

    def __missing__(self, name: str) -> NodeState:
        state = self[name] = NodeState()
        return state


class Flight:
    """One request on its way through a node, from `Fleet.enter` to the one call that ends it."""

    __slots__ = ("batch", "state", "trial", "version_id")

    def __init__(self, state: NodeState, version_id: UUID | None, *, trial: bool) -> None:
        """Remember how many requests are there, this one among them."""
        self.state = state
        self.version_id = version_id
        self.trial = trial
        self.batch = state.in_flight


class Fleet:
    """Counts requests by node and version, and feeds what they tell to breakers and paces."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without requests. `on_room` is called whenever a node gives up a slot that others may wait for."""
        self.states = NodeStates()
        self.on_room: Callable[[], None] | None = None
        self._clock = clock

    def enter(self, node: str, version_id: UUID | None) -> Flight:
        """A request goes to the node, for a version or (None) its base model. End it with one of the calls below."""
        state = self.states[node]
        state.in_flight += 1
        if version_id is not None:
            state.versions[version_id] = state.versions.get(version_id, 0) + 1
        trial = state.breaker.is_open
        if trial:
            state.breaker.begin_trial(self._clock())
        return Flight(state, version_id, trial=trial)

    def succeed(self, flight: Flight) -> None:
        """The engine answered as it should."""
        self._leave(flight)
        flight.state.breaker.succeed(self._clock(), trial=flight.trial)

    def fail(self, flight: Flight) -> None:
        """The engine is at fault."""
        self._leave(flight)
        flight.state.breaker.fail(self._clock(), trial=flight.trial)

    def failed(self, flight: Flight, error: GatewayError) -> None:
        """The request failed, by the engine's fault or not."""
        if isinstance(error, EngineFault) and not isinstance(error, _BLAMELESS):
            self.fail(flight)
        else:
            self.give_up(flight)

    def give_up(self, flight: Flight) -> None:
        """The request ended for a reason that says nothing about the engine."""
        self._leave(flight)
        flight.state.breaker.give_up(trial=flight.trial)

    def versions(self) -> tuple[UUID, ...]:
        """The versions that answer now."""
        return tuple(set().union(*(state.versions for state in self.states.values())))

    @property
    def in_flight(self) -> int:
        """Requests at engines."""
        return sum(state.in_flight for state in self.states.values())

    def breaker_states(self) -> Mapping[str, BreakerState]:
        """The state of each node's breaker."""
        now = self._clock()
        return {name: state.breaker.state(now) for name, state in self.states.items()}

    def checked(self, node: str, *, healthy: bool) -> None:
        """What a health check of the node's engine came to."""
        self.states[node].breaker.checked(self._clock(), healthy=healthy)

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget the nodes that aren't among these and have no request left."""
        kept = set(names)
        for name in [name for name, state in self.states.items() if name not in kept and not state.in_flight]:
            del self.states[name]

    def _leave(self, flight: Flight) -> None:
        state, version_id = flight.state, flight.version_id
        state.in_flight -= 1
        if version_id is None:
            return
        left = state.versions[version_id] - 1
        if left:
            state.versions[version_id] = left
            return
        del state.versions[version_id]
        if self.on_room is not None:
            self.on_room()
