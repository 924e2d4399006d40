"""What placement decides on and what it answers, in values. Rates are requests per hour, sizes are bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, Protocol
from uuid import UUID

from cachecontrol.engines import CAPABILITIES, EngineCapabilities
from cachecontrol.states import EngineKind

NOTHING: Final[frozenset[UUID]] = frozenset()


class Readiness(IntEnum):
    """How soon a node can load something; the lower the better."""

    READY = 0
    # An earlier load failed inside its engine and may have left something in a slot.
    TAINTED = 1
    # Its agent reports, its engine is not well: it will be loaded when it is.
    RECOVERING = 2
    UNUSABLE = 3


class Host(Protocol):
    """What decides whether a node could ever serve a version."""

    @property
    def base_digest(self) -> str: ...
    @property
    def max_rank(self) -> int: ...


class Guest(Protocol):
    @property
    def base_digest(self) -> str: ...
    @property
    def rank(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """The version to place, by what a node must match."""

    base_digest: str
    rank: int


def fits(node: Host, version: Guest) -> bool:
    """Whether the node could ever serve the version."""
    return node.base_digest == version.base_digest and version.rank <= node.max_rank


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """A node as the planner sees it.

    Attributes:
        hot_limit: how many of its adapters the plan may count as in GPU slots, ≤ ``gpu_slots``.
        places: how many adapters its engine may hold in all tiers of its own.
        cpu_bytes: budget for the files of what the engine holds; None: no limit but ``places``.
        disk_bytes: budget for all files on its disk, those of loaded adapters too; None: no limit.
        is_up: it reports and its engine can be expected to serve; else what it holds counts as lost.
        is_cordoned: what is there stays, nothing comes.
        is_draining: nothing may stay and nothing comes.
        requests_per_h: what one engine of this node was measured to serve; None: the setting holds.

    """

    name: str
    base_digest: str
    max_rank: int
    gpu_slots: int
    hot_limit: int
    places: int
    cpu_bytes: int | None = None
    disk_bytes: int | None = None
    is_up: bool = True
    is_cordoned: bool = False
    is_draining: bool = False
    capabilities: EngineCapabilities = CAPABILITIES[EngineKind.VLLM]
    requests_per_h: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether something new may come."""
        return self.is_up and not self.is_cordoned and not self.is_draining

    @property
    def is_keeping(self) -> bool:
        """Whether what is there may stay."""
        return self.is_up and not self.is_draining

    @property
    def room(self) -> int:
        """How many adapters its engine may hold."""
        return self.places if self.capabilities.has_cpu_tier else min(self.places, self.gpu_slots)

    @property
    def pins(self) -> int:
        """How many pinned versions it may hold: one whose every slot is pinned serves nothing else, or dies."""
        return max(0, min(self.hot_limit, self.gpu_slots - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVersion:
    """A version that may be served, as the planner sees it.

    Attributes:
        rate_per_h: its decayed request rate, or the predicted one where that is higher.
        keep: its score where slots are the limit (logarithmic; the smallest leaves first).
        weight: its tenant's priority weight: how much the latency of its requests counts where ranks mix.
        is_pinned: wanted in a GPU slot whatever its rate.
        min_replicas: on at least so many nodes whatever its rate.
        is_wanted_on_release: a schedule wants it warm now. What releases hold counts by ``min_replicas``, what
            is predicted by its rate.
        unwanted_on: names of the nodes that it was taken from by hand, or that had no room for it: it isn't brought
            back there.

    """

    version_id: UUID
    tenant: str
    base_digest: str
    rank: int
    size_bytes: int
    rate_per_h: float
    keep: float
    weight: float = 1.0
    is_pinned: bool = False
    min_replicas: int = 0
    is_wanted_on_release: bool = False
    unwanted_on: frozenset[str] = frozenset()


class RankCost(StrEnum):
    """What a batch of mixed ranks costs, by the engine's kernels (see ``ranks``).

    ``HIGHEST``: kernels that pad to the highest rank of the batch (BGMV); ``SUMMED``: kernels without padding (MBGMV).
    """

    HIGHEST = "highest"
    SUMMED = "summed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimits:
    """What one tenant may take of a pool; None: no limit.

    ``hot``: GPU slots over all nodes; ``cpu_bytes``, ``disk_bytes``: over all nodes; ``places_per_node``: adapters in
    one engine. The floors are served before anybody's rest, and what of them is not asked for is free for others.
    """

    hot: int | None = None
    cpu_bytes: int | None = None
    disk_bytes: int | None = None
    places_per_node: int | None = None
    hot_floor: int = 0
    cpu_floor_bytes: int = 0
    disk_floor_bytes: int = 0

    @property
    def has_floor(self) -> bool:
        return bool(self.hot_floor or self.cpu_floor_bytes or self.disk_floor_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """How to plan one pool.

    Attributes:
        requests_per_h_per_node: what one node serves of one version before another replica pays.
        max_replicas: of one version.
        fill: the share of what a node can serve that is planned for.
        load_factor: no node gets a version that takes it above this multiple of the mean load (1 + ε of consistent
            hashing with bounded loads, Mirrokni et al. 2018).
        leave_factor: a version leaves its node for balance only where the node is above this multiple of the mean.
        choices: among so many of a version's rendezvous nodes the one is taken whose ranks suit best.
        swap_margin: how much more (logarithmic) a version must be worth than the one it displaces.
        warm_rate_per_h: versions above it are wanted in an engine; those at or below it stay where they are until
            their place is needed.
        hot_rate_per_h: versions above it are wanted in a GPU slot, per replica.
        disk_rate_per_h: versions above it are wanted on a disk.
        disk_copies: on how many nodes the files of such a version are to be, those that have it loaded among them.
        consolidates: use as few nodes as the load needs; else all.
        shrink_below: replicas are given up only when the load is below this share of what the fewer ones are for.
        give_up_below: nodes are given up only when the load needs less than this share of those in use.
        limits: by tenant; ``others`` holds for the rest.

    """

    requests_per_h_per_node: float = 7_200.0
    max_replicas: int = 8
    fill: float = 0.8
    load_factor: float = 1.25
    leave_factor: float = 1.75
    choices: int = 8
    swap_margin: float = 0.2
    warm_rate_per_h: float = 0.0
    hot_rate_per_h: float = 1.0
    disk_rate_per_h: float = 0.0
    disk_copies: int = 1
    consolidates: bool = True
    shrink_below: float = 0.75
    give_up_below: float = 0.5
    rank_cost: RankCost = RankCost.HIGHEST
    limits: Mapping[str, TenantLimits] = field(default_factory=dict)
    others: TenantLimits = field(default_factory=TenantLimits)

    def limits_of(self, tenant: str) -> TenantLimits:
        return self.limits.get(tenant, self.others)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Which node has which versions; a node that has none of a kind may be missing.

    ``loaded``: in the engine; ``hot`` (part of ``loaded``): counted as in its GPU slots; ``disk``: files alone, not
    loaded.
    """

    loaded: Mapping[str, frozenset[UUID]] = field(default_factory=dict)
    hot: Mapping[str, frozenset[UUID]] = field(default_factory=dict)
    disk: Mapping[str, frozenset[UUID]] = field(default_factory=dict)

    def only(self, version_ids: Iterable[UUID]) -> "Holding":
        """The same without other versions."""
        wanted = frozenset(version_ids)
        loaded, hot, disk = (
            {name: found & wanted for name, found in kind.items()} for kind in (self.loaded, self.hot, self.disk)
        )
        return Holding(loaded=loaded, hot=hot, disk=disk)


class Claim(IntEnum):
    """With what right a version is in an engine, the stronger the higher."""

    STAYING = 0
    LOAD = 1
    GUARANTEED = 2
    PINNED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a version needs.

    ``replicas`` nodes (0: none, though it may stay where it is), each with ``share_per_h`` of its requests.
    ``standing`` orders all copies: the claim first, then what a copy is worth (its score less ln replicas, since a
    copy brings the rate divided by them). ``keeps_files``: its tenant's floor for disks guarantees its files.
    """

    version: PlannedVersion
    replicas: int
    share_per_h: float
    standing: float
    claim: Claim
    is_hot: bool
    keeps_files: bool = False

    @property
    def id(self) -> UUID:
        return self.version.version_id


class Unplaced(StrEnum):
    """Why a version that is wanted in an engine is in fewer than it should be."""

    NO_NODE = "no_node"
    NO_ROOM = "no_room"
    QUOTA = "quota"
    PINS = "pins"


@dataclass(frozen=True, kw_only=True)
class Plan(Holding):
    """Where everything is to be, with the facts that it was made of (``nodes`` in the order of their names)."""

    nodes: Mapping[str, PlannedNode]
    settings: PlanSettings
    needs: Mapping[UUID, Need]
    unplaced: Mapping[UUID, Unplaced] = field(default_factory=dict)
