"""Which node answers: those that have the version loaded, and of two of them the one where it costs the others less.

Power of two choices (Mitzenmacher, 2001): two nodes drawn at random are compared, not all, since several gateways that
all ran to the one that looked best would find each other there. A session has its own two: see `affinity`.
"""

import enum
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from gateway.routing.affinity import is_too_busy, session_seed, weight
from gateway.routing.breaker import Breaker
from gateway.routing.cost import Pace, cost
from gateway.routing.engines import Form, adapter_form, base_form
from gateway.routing.snapshot import Node, Residency, RoutingSnapshot, Version
from gateway.wire.headers import header_lines

_TWO: Final = 2
_NO_CAP: Final = 2**31

# How good a node is, the best first; from `_CROWDED` on only where there is nothing better.
_UP: Final = 0
_LOST: Final = 1
_CROWDED: Final = 2
_EJECTED: Final = 3
_DOWN: Final = 4
_NOWHERE: Final = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that can answer: with a version by the residency that says so, or with its base model (None).

    `tier` is where the version is: in a slot unless something else is known; `base` for the base model. `slots` is how
    many distinct versions may be in flight there, `seed` the node's number for sessions, `level` how good it is if its
    breaker is closed; `lines` are the headers that tell a client of all this.
    """

    node: Node
    residency: Residency | None
    form: Form
    tier: str
    slots: int
    seed: int
    level: int
    lines: bytes = b""

    @property
    def names(self) -> tuple[str, ...]:
        """What the engine calls the version, in a call and by itself; of the base model it's no secret."""
        return () if self.residency is None else (self.form.model, self.residency.engine_name)


VersionCounts = dict[UUID, int]


class NodeState:
    """What this process knows of one node: its requests there, by version, and how its engine does."""

    __slots__ = ("breaker", "in_flight", "pace", "versions")

    def __init__(self) -> None:
        """Begin idle and well."""
        self.in_flight = 0
        self.versions: VersionCounts = {}
        self.breaker = Breaker()
        self.pace = Pace()


class Miss(enum.StrEnum):
    """Why no node answers: loaded nowhere, every node has its slots full of others, or all of them are down."""

    COLD = "cold"
    CROWDED = "crowded"
    DOWN = "down"


@dataclass(slots=True)
class Wish:
    """What is asked of a node beyond the version.

    `session` is the client's key if it gave one; `prompt_tokens` an estimate; `token_ms` what a token may take by the
    tenant's class of service.
    """

    session: str | None = None
    prompt_tokens: int = 0
    token_ms: float | None = None


@dataclass(slots=True)
class _Known:
    """What was found for a version, from what, and in which snapshot this was last seen to be all there is."""

    version: Version
    residencies: tuple[Residency, ...]
    candidates: tuple[Candidate, ...]
    epoch: int = 0


_MISSES: Mapping[int, Miss] = {_CROWDED: Miss.CROWDED, _DOWN: Miss.DOWN, _NOWHERE: Miss.COLD}


class Places:
    """The candidates of each version, found once per version and set of nodes instead of with each request."""

    def __init__(self) -> None:
        """Begin with nothing found."""
        self._nodes: Mapping[str, Node] | None = None
        self._snapshot: RoutingSnapshot | None = None
        self._epoch = 0
        self._found: dict[str, _Known] = {}  # by the engines' name of the version
        self._bases: dict[str, tuple[Candidate, ...]] = {}

    def of(self, snapshot: RoutingSnapshot, version: Version) -> tuple[Candidate, ...]:
        """Every node on which the version is loaded and fits."""
        if snapshot is not self._snapshot:
            self._turn_to(snapshot)
        known = self._found.get(version.engine_name)
        if known is not None and known.epoch == self._epoch:
            return known.candidates
        residencies = snapshot.residencies.get(version.id, ())
        if known is None or known.version is not version or known.residencies is not residencies:
            known = _Known(version, residencies, candidates(snapshot, version))
            self._found[version.engine_name] = known
        known.epoch = self._epoch
        return known.candidates

    def of_base(self, snapshot: RoutingSnapshot, base_model: str) -> tuple[Candidate, ...]:
        """Every node that serves the base model."""
        if snapshot is not self._snapshot:
            self._turn_to(snapshot)
        found = self._bases.get(base_model)
        if found is None:
            found = self._bases[base_model] = base_candidates(snapshot.bases.get(base_model, ()))
        return found

    def _turn_to(self, snapshot: RoutingSnapshot) -> None:
        self._snapshot = snapshot
        self._epoch += 1
        if snapshot.nodes is not self._nodes:
            self._nodes = snapshot.nodes
            self._found.clear()
            self._bases.clear()


def candidates(snapshot: RoutingSnapshot, version: Version) -> tuple[Candidate, ...]:
    """Every node on which the version is loaded and fits: its own engine name, the same base revision, enough rank."""
    found = (
        _candidate(snapshot.nodes.get(residency.node), residency, version)
        for residency in snapshot.residencies.get(version.id, ())
    )
    return tuple(candidate for candidate in found if candidate is not None)


def base_candidates(nodes: tuple[Node, ...]) -> tuple[Candidate, ...]:
    """Every one of these nodes that can be asked for its base model."""
    forms = ((node, base_form(node.engine_kind, base_model=node.base_model)) for node in nodes)
    return tuple(
        _made(node, None, form, "base", base_label(node.base_model)) for node, form in forms if form is not None
    )


def base_label(base_model: str) -> bytes:
    """A base model's name for a header."""
    return base_model.encode("latin-1", "replace")


def told(label: bytes, node: Node, tier: str) -> bytes:
    """The header lines that say what answers, where, and out of which tier."""
    return header_lines(
        {
            b"x-lorekeeper-version": label,
            b"x-lorekeeper-node": node.name.encode(),
            b"x-lorekeeper-tier": tier.encode(),
        }
    )


def choose(
    found: tuple[Candidate, ...],
    *,
    states: Mapping[str, NodeState],
    wish: Wish,
    now: float,
    is_absent: Callable[[Residency], bool],
    draw: Callable[[], float] = random.random,
) -> Candidate | Miss:
    """The best candidate, or why there is none.

    A node whose heartbeats stopped comes after the others but isn't ruled out: its engine may well go on answering
    while only the control plane is out of reach, and an engine that doesn't is found out by the requests. A node with
    as many distinct versions in flight as it has slots takes no other version: they would push each other out of the
    slots for ever.
    """
    best, pool = _NOWHERE, []
    for candidate in found:
        residency = candidate.residency
        if residency is not None and is_absent(residency):
            continue
        state = states[candidate.node.name]
        level = candidate.level if not state.breaker.is_open else _level(candidate, state, now)
        if (
            level < _CROWDED
            and residency is not None
            and len(state.versions) >= candidate.slots
            and residency.version_id not in state.versions
        ):
            level = _CROWDED
        if level < best:
            best, pool = level, [candidate]
        elif level == best:
            pool.append(candidate)
    if best in _MISSES:
        return _MISSES[best]
    return pool[0] if len(pool) == 1 else _better(_two(pool, wish.session, draw), states, wish, draw)


def _level(candidate: Candidate, state: NodeState, now: float) -> int:
    """How good a node is whose breaker isn't closed."""
    if state.breaker.allows(now):
        return candidate.level
    return _DOWN if state.breaker.is_down else _EJECTED


def _two(pool: list[Candidate], session: str | None, draw: Callable[[], float]) -> tuple[Candidate, Candidate]:
    """Two of the pool: the session's two, the better liked first, or two at random."""
    if session is not None:
        seed = session_seed(session)
        pool.sort(key=lambda candidate: weight(candidate.seed, seed), reverse=True)
        return pool[0], pool[1]
    if len(pool) == _TWO:
        return pool[0], pool[1]
    first = int(draw() * len(pool))
    second = int(draw() * (len(pool) - 1))
    return pool[first], pool[second if second < first else second + 1]


def _better(
    two: tuple[Candidate, Candidate], states: Mapping[str, NodeState], wish: Wish, draw: Callable[[], float]
) -> Candidate:
    one, other = two
    here, there = states[one.node.name], states[other.node.name]
    costs_here, costs_there = _cost(here, one, wish), _cost(there, other, wish)
    if wish.session is not None and costs_here != float("inf"):
        return other if is_too_busy(here.in_flight, there.in_flight) else one
    if costs_here == costs_there:
        if here.in_flight == there.in_flight:
            return one if draw() < 0.5 else other  # noqa: PLR2004  a coin
        return one if here.in_flight < there.in_flight else other
    return one if costs_here < costs_there else other


def _cost(state: NodeState, candidate: Candidate, wish: Wish) -> float:
    return cost(
        state.pace,
        state.in_flight,
        prompt_tokens=wish.prompt_tokens,
        tier=candidate.tier,
        token_ms=wish.token_ms,
    )


def _candidate(node: Node | None, residency: Residency, version: Version) -> Candidate | None:
    if (
        node is None
        or residency.observed != "loaded"
        or residency.engine_name != version.engine_name
        or node.base_digest != version.base_digest
        or version.rank > node.max_rank
    ):
        return None
    form = adapter_form(node.engine_kind, engine_name=version.engine_name, base_model=node.base_model)
    return None if form is None else _made(node, residency, form, residency.tier or "gpu", version.label_bytes)


def _made(node: Node, residency: Residency | None, form: Form, tier: str, label: bytes) -> Candidate:
    return Candidate(
        node=node,
        residency=residency,
        form=form,
        tier=tier,
        slots=node.gpu_slots or _NO_CAP,
        seed=zlib.crc32(node.name.encode()),
        level=_UP if node.status == "up" else _LOST,
        lines=told(label, node, tier),
    )
