"""The routing snapshot: everything that decides where a request goes, frozen in memory.

A snapshot is built from one consistent read of the routing views and never changes. A newer one replaces it whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self
from uuid import UUID

Row = tuple[Any, ...]

_REVOKED = "revoked"
_SERVED_STATES = frozenset({"approved", "yanked"})


@dataclass(frozen=True, slots=True)
class Alias:
    """A tenant's stable name and the version that it points to."""

    tenant: str
    name: str
    version_id: UUID
    revision: int


@dataclass(frozen=True, slots=True)
class Version:
    """A signed version; `engine_name` is the name under which engines know it, unique for ever."""

    id: UUID
    tenant: str
    adapter: str
    name: str
    engine_name: str
    base_digest: str
    rank: int
    state: str

    @property
    def may_be_served(self) -> bool:
        """Approved, or yanked (no new releases, but what points to it goes on)."""
        return self.state in _SERVED_STATES

    @property
    def label(self) -> str:
        """The version for people: `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.name}"


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with an engine; `engine_url` has no path."""

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
    """That a version is on a node; only `loaded` is routable."""

    node: str
    version_id: UUID
    engine_name: str
    observed: str
    generation: int


@dataclass(frozen=True, slots=True)
class Token:
    """An API key of a tenant, known by the SHA-256 of its text (hex) alone."""

    prefix: str
    digest: str = field(repr=False)
    tenant: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class RoutingRows:
    """The rows of the five routing views, columns in the order of the classes above."""

    aliases: Iterable[Row] = ()
    versions: Iterable[Row] = ()
    nodes: Iterable[Row] = ()
    residencies: Iterable[Row] = ()
    tokens: Iterable[Row] = ()


@dataclass(frozen=True, slots=True)
class RoutingSnapshot:
    """All routing facts, indexed for the request path. Two snapshots of equal facts are equal."""

    aliases: Mapping[str, Mapping[str, Alias]]
    versions: Mapping[UUID, Version]
    nodes: Mapping[str, Node]
    residencies: Mapping[UUID, tuple[Residency, ...]]
    tokens: Mapping[str, Token] = field(repr=False)

    @classmethod
    def build(cls, rows: RoutingRows) -> Self:
        """Index the rows of one consistent read."""
        aliases: defaultdict[str, dict[str, Alias]] = defaultdict(dict)
        for row in rows.aliases:
            alias = Alias(*row)
            aliases[alias.tenant][alias.name] = alias
        residencies: defaultdict[UUID, list[Residency]] = defaultdict(list)
        for row in sorted(rows.residencies, key=lambda row: str(row[0])):
            residency = Residency(*row)
            residencies[residency.version_id].append(residency)
        return cls(
            aliases=dict(aliases),
            versions={row[0]: Version(*row) for row in rows.versions},
            nodes={row[0]: Node(*row) for row in rows.nodes},
            residencies={version_id: tuple(found) for version_id, found in residencies.items()},
            tokens={row[1]: Token(*row) for row in rows.tokens},
        )

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
        return self.aliases.get(tenant, {}).get(name)

    def served_aliases(self, tenant: str) -> tuple[str, ...]:
        """The names of the tenant's aliases that can answer, sorted."""
        own = self.aliases.get(tenant, {})
        return tuple(sorted(name for name, alias in own.items() if self._is_served(alias)))

    def _is_served(self, alias: Alias) -> bool:
        version = self.versions.get(alias.version_id)
        return version is not None and version.tenant == alias.tenant and version.may_be_served
