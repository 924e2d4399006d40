"""Small routing worlds for the gateway's tests."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from gateway.routing.snapshot import RoutingRows, RoutingSnapshot, Row

V1 = UUID("00000000-0000-0000-0000-000000000001")
V2 = UUID("00000000-0000-0000-0000-000000000002")
FOREIGN = UUID("00000000-0000-0000-0000-000000000009")
BASE = "b" * 64
NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)

ACME_KEY = "lk_0123456789ab_" + "a" * 43
OTHER_KEY = "lk_0123456789cd_" + "b" * 43
EXPIRED_KEY = "lk_0123456789ef_" + "c" * 43


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def token_row(token: str, tenant: str, expires_at: datetime | None = None) -> Row:
    return (token[3:15], digest(token), tenant, expires_at)


def version_row(version_id: UUID, name: str, *, tenant: str = "acme", state: str = "approved", rank: int = 8) -> Row:
    return (version_id, tenant, "support-tone", name, f"lk-support-tone-{name}-{tenant}", BASE, rank, state)


def node_row(
    name: str, *, url: str = "http://engine.invalid", status: str = "up", base: str = BASE, max_rank: int = 16
) -> Row:
    return (name, "vllm", url, base, "base", max_rank, 4, status)


def residency_row(node: str, version: Row, *, observed: str = "loaded", generation: int = 1) -> Row:
    return (node, version[0], version[4], observed, generation)


def shared_row(name: str, version_id: UUID = FOREIGN, *, split: Row | None = None) -> Row:
    """An alias of the tenant `other` that acme may call by `name`; `split` are the columns of one."""
    return ("acme", name, version_id, 1, *(split or (None,) * 7), "other")


@dataclass(slots=True)
class World:
    """Rows that a test may change before it builds a snapshot of them."""

    aliases: list[Row] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    residencies: list[Row] = field(default_factory=list)
    tokens: list[Row] = field(default_factory=list)
    rules: list[Row] = field(default_factory=list)
    cold_rules: list[Row] = field(default_factory=list)

    def snapshot(self) -> RoutingSnapshot:
        return RoutingSnapshot.build(
            RoutingRows(
                aliases=self.aliases,
                versions=self.versions,
                nodes=self.nodes,
                residencies=self.residencies,
                tokens=self.tokens,
                rules=self.rules,
                cold_rules=self.cold_rules,
            )
        )


def acme_world() -> World:
    """`acme/support` points to v1, loaded on node n1; another tenant has `secret`."""
    v1, v2 = version_row(V1, "v1"), version_row(V2, "v2")
    foreign = version_row(FOREIGN, "v1", tenant="other")
    return World(
        aliases=[("acme", "support", V1, 1), ("other", "secret", FOREIGN, 1)],
        versions=[v1, v2, foreign],
        nodes=[node_row("n1")],
        residencies=[residency_row("n1", v1)],
        tokens=[
            token_row(ACME_KEY, "acme"),
            token_row(OTHER_KEY, "other", NOW + timedelta(days=36_500)),
            token_row(EXPIRED_KEY, "acme", NOW - timedelta(seconds=1)),
        ],
    )
