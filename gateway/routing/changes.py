"""Deltas: which rows of the routing views may have changed, and the snapshot with what is there now in their place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar
from uuid import UUID

from gateway.routing.snapshot import (
    Alias,
    ColdRule,
    Node,
    Residency,
    RoutingRows,
    RoutingSnapshot,
    RulesByTenant,
    TenantRules,
    Token,
    Version,
    by_version,
    same_places,
)

K = TypeVar("K")
V = TypeVar("V")
AliasKey = tuple[str, str]  # tenant and name


@dataclass(frozen=True, slots=True)
class Changed:
    """The keys of rows that may have changed: made, changed or gone.

    A node stands for itself and for all that is on it. `cold_rules` are few and change together.
    """

    aliases: set[AliasKey] = field(default_factory=set)
    versions: set[UUID] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    residencies: set[UUID] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)
    cold_rules: bool = False

    @classmethod
    def read(cls, notes: Iterable[tuple[str, str]]) -> Self:
        """From (kind, key) as the feed has them; kinds that this gateway doesn't know are none of its business.

        Raises ValueError for a key that isn't one.
        """
        keys: dict[str, set[str]] = {}
        for kind, key in notes:
            keys.setdefault(kind, set()).add(key)
        return cls(
            aliases={_alias_key(key) for key in keys.get("aliases", ())},
            versions={UUID(key) for key in keys.get("versions", ())},
            nodes=keys.get("nodes", set()),
            residencies={UUID(key) for key in keys.get("residencies", ())},
            tokens=keys.get("tokens", set()),
            rules=keys.get("rules", set()),
            cold_rules="cold_rules" in keys,
        )


def changed_snapshot(snapshot: RoutingSnapshot, changed: Changed, rows: RoutingRows) -> RoutingSnapshot:
    """The snapshot with `rows`, all there are now under the keys in `changed`, in place of what it had under them.

    What is the same afterwards is the same object, the snapshot too.
    """
    facts: dict[str, Any] = {
        "aliases": _aliases(snapshot.aliases, changed.aliases, map(Alias.from_row, rows.aliases)),
        "versions": _merged(snapshot.versions, changed.versions, {row[0]: Version(*row) for row in rows.versions}),
        "nodes": _merged(snapshot.nodes, changed.nodes, {row[0]: Node(*row) for row in rows.nodes}),
        "residencies": _residencies(snapshot.residencies, changed, by_version(rows.residencies)),
        "tokens": _merged(snapshot.tokens, changed.tokens, {row[1]: Token(*row) for row in rows.tokens}),
        "rules": _rules(snapshot.rules, changed.rules, {row[0]: TenantRules.from_row(row) for row in rows.rules}),
    }
    if changed.cold_rules:
        found = {(row[0], row[1]): ColdRule(*row[2:]) for row in rows.cold_rules}
        facts["cold_rules"] = _merged(snapshot.cold_rules, snapshot.cold_rules.keys() | found.keys(), found)
    new = {name: value for name, value in facts.items() if value is not getattr(snapshot, name)}
    return replace(snapshot, **new) if new else snapshot


def _alias_key(key: str) -> AliasKey:
    tenant, _slash, name = key.partition("/")
    return tenant, name


def _merged(known: Mapping[K, V], keys: Iterable[K], found: Mapping[K, V]) -> Mapping[K, V]:
    different = [key for key in keys if known.get(key) != found.get(key)]
    if not different:
        return known
    merged = dict(known)
    for key in different:
        if key in found:
            merged[key] = found[key]
        else:
            del merged[key]
    return merged


def _aliases(
    known: Mapping[str, Mapping[str, Alias]], keys: Iterable[AliasKey], rows: Iterable[Alias]
) -> Mapping[str, Mapping[str, Alias]]:
    """Tenant by tenant, so that one alias costs no copy of all."""
    names: dict[str, set[str]] = {}
    for tenant, name in keys:
        names.setdefault(tenant, set()).add(name)
    found: dict[str, dict[str, Alias]] = {}
    for alias in rows:
        found.setdefault(alias.tenant, {})[alias.name] = alias
    own = {tenant: _merged(known.get(tenant, {}), wanted, found.get(tenant, {})) for tenant, wanted in names.items()}
    different = {tenant: aliases for tenant, aliases in own.items() if aliases is not known.get(tenant, aliases)}
    different |= {tenant: aliases for tenant, aliases in own.items() if tenant not in known and aliases}
    return {tenant: aliases for tenant, aliases in {**known, **different}.items() if aliases} if different else known


def _rules(known: RulesByTenant, keys: Iterable[str], found: Mapping[str, TenantRules]) -> RulesByTenant:
    merged = _merged(known, keys, found)
    return known if merged is known else RulesByTenant(merged)


def _residencies(
    known: Mapping[UUID, tuple[Residency, ...]], changed: Changed, found: Mapping[UUID, tuple[Residency, ...]]
) -> Mapping[UUID, tuple[Residency, ...]]:
    """`found` is all there is of the versions in `changed`, and of other versions all that is on the nodes in it."""
    nodes = changed.nodes
    there = {key for key, places in known.items() if any(place.node in nodes for place in places)} if nodes else set()
    places: dict[UUID, tuple[Residency, ...]] = {}
    for key in changed.residencies | there | found.keys():
        now, before = found.get(key, ()), known.get(key, ())
        if key not in changed.residencies:
            elsewhere = [place for place in before if place.node not in nodes]
            now = tuple(sorted((*elsewhere, *now), key=lambda place: place.node))
        if same_places(before, now) is not before:
            places[key] = now
    if not places:
        return known
    return {key: value for key, value in {**known, **places}.items() if value}
