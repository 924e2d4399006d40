"""Why versions are where they are, and why they left."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from client.decoding import decode
from client.pages import iterate
from client.resources.nodes import Residency  # noqa: TC001  decoding reads it from the annotations
from client.transport import path_of

if TYPE_CHECKING:
    from client.refs import VersionRef
    from client.transport import Transport

DEFAULT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Eviction:
    """That a version went to a lower tier of a node, by which policy's score, and who would have gone instead.

    `runner_up` and `asked_by` are null where they belong to tenants that this token can't see.
    """

    node: str
    tenant: str
    adapter: str
    version: str
    tier: str
    to_tier: str
    reason: str
    at: str
    policy: str | None = None
    policy_number: int | None = None
    score: int | float | None = None
    factors: dict[str, int | float] = field(default_factory=dict)
    runner_up: str | None = None
    runner_up_score: int | float | None = None
    asked_by: str | None = None

    @property
    def ref(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.version}"


@dataclass(frozen=True, slots=True)
class WaitingLoad:
    """A wish to have a version loaded: `queued`, or `placed` on a node."""

    state: str
    since: str
    until: str
    node: str | None = None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """How a version stands: how much it is asked for, where it is, and why it last left nodes."""

    tenant: str
    adapter: str
    version: str
    requests_per_hour: int | float = 0
    hits: int = 0
    last_used_at: str | None = None
    load: WaitingLoad | None = None
    nodes: tuple[Residency, ...] = ()
    evictions: tuple[Eviction, ...] = ()


class Evictions:
    """Calls below `/evictions`, and the placement of a version."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def newest(self, *, limit: int = DEFAULT_LIMIT, **filters: str) -> tuple[Eviction, ...]:
        """Return the newest evictions; filters are `node`, `tenant`, `adapter`, `version` and `reason`."""
        return tuple(islice(iterate(Eviction, self._transport, path_of("evictions"), filters=filters), limit))

    def explain(self, ref: VersionRef) -> Placement:
        """Return how the version stands, and why."""
        path = path_of("tenants", ref.tenant, "adapters", ref.adapter, "versions", ref.version, "placement")
        return decode(Placement, self._transport.call("GET", path))
