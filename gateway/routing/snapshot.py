"""The routing snapshot: everything that decides where a request goes, frozen in memory.

A snapshot is built from one consistent read of the routing views and never changes. A newer one replaces it whole; what
didn't change between the two is shared by them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter, is_
from typing import Any, Final, Literal, Self, TypeVar
from uuid import UUID

T = TypeVar("T")
M = TypeVar("M", bound=Mapping[Any, Any])
Row = tuple[Any, ...]
OnCold = Literal["wait", "stable", "base", "refuse"]

_REVOKED: Final = "revoked"
_SERVED_STATES = frozenset({"approved", "yanked"})
_EVERYBODY: Final = ""
_SPLIT_COLUMNS: Final = 7


@dataclass(frozen=True, slots=True)
class Split:
    """Which requests of an alias go to a candidate instead of its version, and which are mirrored to one.

    A tenant in `deny` never gets the candidate, one in `allow` always does. For the others it depends on the request's
    sticky key: ``int.from_bytes(sha256(f"{salt}:{key}".encode()).digest()[:8], "big") % 10_000 < basis_points``. So a
    key that is in stays in while `basis_points` grows. 64 bits make the buckets equal but for 1 part in 10^15.
    `shadow_basis_points` of the requests (0 to 10,000, as `basis_points`) are mirrored to `shadow_id`, if there is one.
    """

    candidate_id: UUID
    basis_points: int
    salt: str
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    shadow_id: UUID | None = None
    shadow_basis_points: int = 0


@dataclass(frozen=True, slots=True)
class Alias:
    """A name by which a tenant may call a version, and how its requests are split, if they are.

    `owner` is the tenant that the versions belong to: the caller itself, or one whose alias was granted to it.
    """

    tenant: str
    name: str
    version_id: UUID
    revision: int
    split: Split | None = None
    owner: str = ""

    def __post_init__(self) -> None:
        """A tenant's own, unless another one is named; the name is kept once."""
        if not self.owner or self.owner == self.tenant:
            object.__setattr__(self, "owner", self.tenant)

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """A row of `routing_aliases`; the columns of the split may be missing, or null, and the owner's, too."""
        tenant, name, version_id, revision, *rest = row
        split = rest[:_SPLIT_COLUMNS]
        return cls(
            tenant,
            name,
            version_id,
            revision,
            _split(split) if split and split[0] is not None else None,
            *rest[_SPLIT_COLUMNS:],
        )

    @property
    def is_shared(self) -> bool:
        """Whether it is another tenant's, which the caller learns no name of."""
        return self.owner != self.tenant


@dataclass(frozen=True, slots=True)
class Version:
    """A signed version; `engine_name` is the name under which engines know it, unique for ever.

    `label` is the version for people, `tenant/adapter@version`; `label_bytes` the same for a header.
    """

    id: UUID
    tenant: str
    adapter: str
    name: str
    engine_name: str
    base_digest: str
    rank: int
    state: str
    label: str = field(init=False, repr=False, compare=False)
    label_bytes: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make once what each answer says."""
        label = f"{self.tenant}/{self.adapter}@{self.name}"
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "label_bytes", label.encode())

    @property
    def may_be_served(self) -> bool:
        """Approved, or yanked (no new releases, but what points to it goes on)."""
        return self.state in _SERVED_STATES


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with an engine (`vllm`, `tgi`, `sglang` or `lorax`); `engine_url` has no path."""

    name: str
    engine_kind: str
    engine_url: str
    base_digest: str
    base_model: str
    max_rank: int
    gpu_slots: int
    status: str


@dataclass(frozen=True, slots=True)
class Residency:
    """That a version is on a node; only `loaded` is routable.

    `tier` is where its engine keeps it, `gpu`, `cpu`, or `disk` where it only knows the name; empty if nobody knows.
    """

    node: str
    version_id: UUID
    engine_name: str
    observed: str
    generation: int
    # A new estimate of it is no news to anybody who waits.
    tier: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Token:
    """An API key of a tenant, known by the SHA-256 of its text (hex) alone."""

    prefix: str
    digest: str = field(repr=False)
    tenant: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class TenantRules:
    """What a tenant may ask for, counted over a minute or at once; None: without a limit.

    `base_models` are the base models that it may call by their own names; `allows_shadow` is whether its requests may
    be mirrored to a candidate.
    """

    tenant: str
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    gpu_ms_per_minute: int | None = None
    base_models: frozenset[str] = frozenset()
    allows_shadow: bool = True

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """A row of `routing_rules`; `base_models` is an array there."""
        tenant, requests, tokens, concurrent, gpu_ms, base_models, allows_shadow = row
        return cls(tenant, requests, tokens, concurrent, gpu_ms, frozenset(base_models), allows_shadow)


@dataclass(frozen=True, slots=True)
class ColdRule:
    """What becomes of a request whose version is loaded nowhere.

    `wait` for it, `stable`: the version that the alias points to answers for its candidate, `base`: the base model
    answers, `refuse` at once. `wait_s` bounds the wait; None: the gateway's own limit. `token_ms` is how long a token
    may take in the tenant's class of service, in milliseconds; None: nothing is promised.
    """

    on_cold: OnCold = "wait"
    wait_s: float | None = None
    token_ms: float | None = None


_WAIT = ColdRule()


class RulesByTenant(dict[str, TenantRules]):
    """The rules of each tenant; those that nobody has written are the default ones."""

    def __missing__(self, tenant: str) -> TenantRules:
        """No limits, no base models, shadows allowed. Nothing is stored."""
        return _default_rules(tenant)


@dataclass(frozen=True, slots=True)
class RoutingRows:
    """Rows of the routing views, all or some, columns in the order of the classes above.

    Those of `cold_rules` are (base model, tenant or empty for everybody else, on_cold, wait_s, token_ms).
    """

    aliases: Iterable[Row] = ()
    versions: Iterable[Row] = ()
    nodes: Iterable[Row] = ()
    residencies: Iterable[Row] = ()
    tokens: Iterable[Row] = ()
    rules: Iterable[Row] = ()
    cold_rules: Iterable[Row] = ()


@dataclass(frozen=True, slots=True)
class RoutingSnapshot:
    """All routing facts, indexed for the request path. Two snapshots of equal facts are equal.

    `aliases` by tenant and name, `tokens` by digest, `bases`: the nodes of each base model, by name.
    """

    aliases: Mapping[str, Mapping[str, Alias]]
    versions: Mapping[UUID, Version]
    nodes: Mapping[str, Node]
    residencies: Mapping[UUID, tuple[Residency, ...]]
    tokens: Mapping[str, Token] = field(repr=False)
    rules: RulesByTenant = field(default_factory=RulesByTenant)
    cold_rules: Mapping[tuple[str, str], ColdRule] = field(default_factory=dict)
    bases: Mapping[str, tuple[Node, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index what follows from the rest."""
        object.__setattr__(self, "bases", nodes_by_base(self.nodes.values()))

    @staticmethod
    def build(rows: RoutingRows) -> "RoutingSnapshot":
        """Index the rows of one consistent read."""
        draft = Draft()
        draft.take(rows)
        return draft.snapshot()

    def with_residencies(self, told: Mapping[UUID, tuple[Residency, ...]]) -> Self:
        """The same facts, but for where these versions are."""
        return replace(self, residencies={**self.residencies, **told}) if told else self

    def revoking(self, version_ids: Iterable[UUID]) -> Self:
        """The same facts, but these versions are revoked; itself if none of them is served."""
        served = {key: self.versions[key] for key in version_ids if self.serves(key)}
        if not served:
            return self
        revoked = {key: replace(version, state=_REVOKED) for key, version in served.items()}
        return replace(self, versions={**self.versions, **revoked})

    def serves(self, version_id: UUID) -> bool:
        """Whether a request may go to the version."""
        version = self.versions.get(version_id)
        return version is not None and version.may_be_served

    def alias(self, tenant: str, name: str) -> Alias | None:
        """The tenant's alias of that name."""
        own = self.aliases.get(tenant)
        return None if own is None else own.get(name)

    def served_aliases(self, tenant: str) -> tuple[str, ...]:
        """The names of the aliases that the tenant may call and that can answer, sorted."""
        own = self.aliases.get(tenant, {})
        return tuple(sorted(name for name, alias in own.items() if self._is_served(alias)))

    def cold_rule(self, base_model: str, tenant: str) -> ColdRule:
        """What the policy in force says for the tenant's requests that find nothing loaded; `wait` without one."""
        own = self.cold_rules.get((base_model, tenant))
        return self.cold_rules.get((base_model, _EVERYBODY), _WAIT) if own is None else own

    def _is_served(self, alias: Alias) -> bool:
        version = self.versions.get(alias.version_id)
        return version is not None and version.tenant == alias.owner and version.may_be_served


class Draft:
    """A snapshot in the making: takes the rows of one consistent read piece by piece.

    What is as it was in the snapshot `known` is shared with it, down to whole mappings: so the two take little more
    memory than one, and to compare them takes no time.
    """

    def __init__(self, known: RoutingSnapshot | None = None) -> None:
        """Begin with nothing in it."""
        self._known = known or _NOTHING
        self._aliases: dict[str, dict[str, Alias]] = {}
        self._versions: dict[UUID, Version] = {}
        self._nodes: dict[str, Node] = {}
        self._residencies: dict[UUID, list[Residency]] = {}
        self._tokens: dict[str, Token] = {}
        self._rules = RulesByTenant()
        self._cold_rules: dict[tuple[str, str], ColdRule] = {}

    def take(self, rows: RoutingRows) -> None:
        """Take these rows in."""
        for alias in map(Alias.from_row, rows.aliases):
            known = self._known.alias(alias.tenant, alias.name)
            self._aliases.setdefault(alias.tenant, {})[alias.name] = _kept(known, alias)
        for row in rows.versions:
            self._versions[row[0]] = _kept(self._known.versions.get(row[0]), Version(*row))
        for row in rows.nodes:
            self._nodes[row[0]] = _kept(self._known.nodes.get(row[0]), Node(*row))
        for row in rows.residencies:
            self._residencies.setdefault(row[1], []).append(self._kept_place(Residency(*row)))
        for row in rows.tokens:
            self._tokens[row[1]] = _kept(self._known.tokens.get(row[1]), Token(*row))
        for row in rows.rules:
            self._rules[row[0]] = _kept(self._known.rules.get(row[0]), TenantRules.from_row(row))
        for row in rows.cold_rules:
            known_rule = self._known.cold_rules.get((row[0], row[1]))
            self._cold_rules[row[0], row[1]] = _kept(known_rule, ColdRule(*row[2:]))

    def snapshot(self) -> RoutingSnapshot:
        """What was taken in."""
        known = self._known
        aliases = {tenant: settled(known.aliases.get(tenant, {}), own) for tenant, own in self._aliases.items()}
        places = {key: self._settled_places(key, found) for key, found in self._residencies.items()}
        return RoutingSnapshot(
            aliases=settled(known.aliases, aliases),
            versions=settled(known.versions, self._versions),
            nodes=settled(known.nodes, self._nodes),
            residencies=settled(known.residencies, places),
            tokens=settled(known.tokens, self._tokens),
            rules=settled(known.rules, self._rules),
            cold_rules=settled(known.cold_rules, self._cold_rules),
        )

    def _kept_place(self, new: Residency) -> Residency:
        for known in self._known.residencies.get(new.version_id, ()):
            if known == new and known.tier == new.tier:
                return known
        return new

    def _settled_places(self, version_id: UUID, found: list[Residency]) -> tuple[Residency, ...]:
        known = self._known.residencies.get(version_id, ())
        places = tuple(found) if len(found) == 1 else tuple(sorted(found, key=_node_of))
        return known if len(known) == len(places) and all(map(is_, known, places)) else places


def settled(known: M, new: M) -> M:
    """The mapping that is known already if the new one holds the very same objects under the same keys."""
    if len(known) != len(new) or any(known.get(key) is not value for key, value in new.items()):
        return new
    return known


def same_places(known: tuple[Residency, ...], new: tuple[Residency, ...]) -> tuple[Residency, ...]:
    """The residencies that are known already if nothing differs, not even an estimate of a tier."""
    is_same = known == new and all(old.tier == place.tier for old, place in zip(known, new, strict=True))
    return known if is_same else new


def by_version(rows: Iterable[Row]) -> dict[UUID, tuple[Residency, ...]]:
    """The residencies of each version, by node."""
    found: dict[UUID, list[Residency]] = {}
    for row in rows:
        found.setdefault(row[1], []).append(Residency(*row))
    return {version_id: tuple(sorted(places, key=_node_of)) for version_id, places in found.items()}


def nodes_by_base(nodes: Iterable[Node]) -> dict[str, tuple[Node, ...]]:
    """The nodes that serve each base model, by name."""
    found: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        found.setdefault(node.base_model, []).append(node)
    return {base: tuple(serving) for base, serving in found.items()}


def _kept(known: T | None, new: T) -> T:
    return known if known is not None and known == new else new


def _split(columns: list[Any]) -> Split:
    candidate_id, basis_points, salt, allow, deny, shadow_id, shadow_basis_points = columns
    return Split(candidate_id, basis_points, salt, frozenset(allow), frozenset(deny), shadow_id, shadow_basis_points)


_node_of = attrgetter("node")
_NOTHING = RoutingSnapshot(aliases={}, versions={}, nodes={}, residencies={}, tokens={})


@lru_cache(maxsize=4096)
def _default_rules(tenant: str) -> TenantRules:
    return TenantRules(tenant)
