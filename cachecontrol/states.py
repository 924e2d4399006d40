"""States of nodes and residencies, and the allowed moves between them."""

from enum import StrEnum
from typing import Final


class NodeStatus(StrEnum):
    """``new`` until the first report, ``lost`` while reports are missing. Lost says nothing of the engine itself."""

    NEW = "new"
    UP = "up"
    LOST = "lost"


class EngineKind(StrEnum):
    VLLM = "vllm"
    TGI = "tgi"
    SGLANG = "sglang"
    LORAX = "lorax"


class Tier(StrEnum):
    """Where a version is on a node: in a slot of its engine, in the engine but in no slot, or only its files."""

    GPU = "gpu"
    CPU = "cpu"
    DISK = "disk"


class Desired(StrEnum):
    """Where a version ought to be on a node.

    ``gpu`` is in the engine, known by its name: which of those are in slots is the engine's own doing. ``disk`` keeps
    the files and nothing in the engine.
    """

    GPU = "gpu"
    DISK = "disk"
    ABSENT = "absent"


class Observed(StrEnum):
    """Where a version was last known to be on a node."""

    ABSENT = "absent"
    FETCHING = "fetching"
    ON_DISK = "on_disk"
    LOADING = "loading"
    LOADED = "loaded"
    DRAINING = "draining"
    FAILED = "failed"


class Outcome(StrEnum):
    """What a node says of a command: three steps on the way, three ends."""

    FETCHING = "fetching"
    ON_DISK = "on_disk"
    LOADING = "loading"
    LOADED = "loaded"
    EVICTED = "evicted"
    FAILED = "failed"


class ErrorClass(StrEnum):
    """Why a command failed: only ``transient`` and ``capacity`` are worth another try."""

    PERMANENT = "permanent"
    CAPACITY = "capacity"
    TRANSIENT = "transient"
    REFUSED = "refused"


class DemandState(StrEnum):
    """What a gateway is told when it asks for a version; all but the first three end its wait."""

    LOADING = "loading"
    LOADED = "loaded"
    QUEUED = "queued"
    SHED = "shed"
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"
    REFUSED = "refused"
    FAILED = "failed"


class LoadState(StrEnum):
    """Where a wish to load stands: in the queue, given to a node, and three ends."""

    QUEUED = "queued"
    PLACED = "placed"
    DONE = "done"
    REFUSED = "refused"
    EXPIRED = "expired"


class EvictionReason(StrEnum):
    """Why a version went to a lower tier."""

    ROOM = "room"
    QUOTA = "quota"
    TTL = "ttl"
    IDLE = "idle"
    DRAIN = "drain"
    PRESSURE = "pressure"
    WITHDRAWN = "withdrawn"
    MANUAL = "manual"
    PLAN = "plan"
    ROLLBACK = "rollback"


class PolicyState(StrEnum):
    """A cache policy is proposed, and decided on once; one that was in force can be so again."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DECLINED = "declined"


OBSERVED_AFTER: Final[dict[Outcome, Observed]] = {
    Outcome.FETCHING: Observed.FETCHING,
    Outcome.ON_DISK: Observed.ON_DISK,
    Outcome.LOADING: Observed.LOADING,
    Outcome.LOADED: Observed.LOADED,
    Outcome.EVICTED: Observed.ABSENT,
    Outcome.FAILED: Observed.FAILED,
}
# By what is desired: what ends a command, and what may be said of one at all.
ENDS: Final[dict[Desired, frozenset[Outcome]]] = {
    Desired.GPU: frozenset({Outcome.LOADED, Outcome.FAILED}),
    # Evicted: out of the engine as asked, and its files turned out to be gone.
    Desired.DISK: frozenset({Outcome.ON_DISK, Outcome.EVICTED, Outcome.FAILED}),
    Desired.ABSENT: frozenset({Outcome.EVICTED, Outcome.FAILED}),
}
EXPECTED: Final[dict[Desired, frozenset[Outcome]]] = {
    Desired.GPU: ENDS[Desired.GPU] | {Outcome.FETCHING, Outcome.ON_DISK, Outcome.LOADING},
    Desired.DISK: ENDS[Desired.DISK] | {Outcome.FETCHING},
    Desired.ABSENT: ENDS[Desired.ABSENT],
}
WORTH_ANOTHER_TRY: Final = frozenset({ErrorClass.TRANSIENT, ErrorClass.CAPACITY})

POLICY_MOVES: Final[frozenset[tuple[PolicyState, PolicyState]]] = frozenset(
    {
        (PolicyState.PROPOSED, PolicyState.ACTIVE),
        (PolicyState.PROPOSED, PolicyState.DECLINED),
        (PolicyState.ACTIVE, PolicyState.SUPERSEDED),
        (PolicyState.SUPERSEDED, PolicyState.ACTIVE),
    }
)

LOAD_MOVES: Final[frozenset[tuple[LoadState, LoadState]]] = frozenset(
    {
        (LoadState.QUEUED, LoadState.PLACED),
        # It was found to be loaded already.
        (LoadState.QUEUED, LoadState.DONE),
        (LoadState.QUEUED, LoadState.REFUSED),
        (LoadState.QUEUED, LoadState.EXPIRED),
        (LoadState.PLACED, LoadState.DONE),
        (LoadState.PLACED, LoadState.REFUSED),
    }
)

NODE_MOVES: Final[frozenset[tuple[NodeStatus, NodeStatus]]] = frozenset(
    {
        (NodeStatus.NEW, NodeStatus.UP),
        (NodeStatus.UP, NodeStatus.LOST),
        (NodeStatus.LOST, NodeStatus.UP),
    }
)

# Reports of steps may be lost or skipped, so every way forward is allowed; only draining must come before it is gone.
OBSERVED_MOVES: Final[frozenset[tuple[Observed, Observed]]] = frozenset(
    {
        (Observed.ABSENT, Observed.FETCHING),
        (Observed.ABSENT, Observed.ON_DISK),
        (Observed.ABSENT, Observed.LOADING),
        (Observed.ABSENT, Observed.LOADED),
        (Observed.ABSENT, Observed.FAILED),
        (Observed.FETCHING, Observed.ON_DISK),
        (Observed.FETCHING, Observed.LOADING),
        (Observed.FETCHING, Observed.LOADED),
        (Observed.FETCHING, Observed.FAILED),
        (Observed.FETCHING, Observed.ABSENT),
        (Observed.ON_DISK, Observed.FETCHING),
        (Observed.ON_DISK, Observed.LOADING),
        (Observed.ON_DISK, Observed.LOADED),
        (Observed.ON_DISK, Observed.FAILED),
        (Observed.ON_DISK, Observed.ABSENT),
        (Observed.LOADING, Observed.FETCHING),
        (Observed.LOADING, Observed.ON_DISK),
        (Observed.LOADING, Observed.LOADED),
        (Observed.LOADING, Observed.FAILED),
        (Observed.LOADING, Observed.DRAINING),
        (Observed.LOADING, Observed.ABSENT),
        (Observed.LOADED, Observed.DRAINING),
        (Observed.LOADED, Observed.FAILED),
        # The engine was restarted and has forgotten it.
        (Observed.LOADED, Observed.ON_DISK),
        (Observed.LOADED, Observed.ABSENT),
        (Observed.DRAINING, Observed.ABSENT),
        (Observed.DRAINING, Observed.ON_DISK),
        (Observed.DRAINING, Observed.FAILED),
        # Wanted again before it was gone.
        (Observed.DRAINING, Observed.FETCHING),
        (Observed.DRAINING, Observed.LOADING),
        (Observed.DRAINING, Observed.LOADED),
        (Observed.FAILED, Observed.FETCHING),
        (Observed.FAILED, Observed.ON_DISK),
        (Observed.FAILED, Observed.LOADING),
        (Observed.FAILED, Observed.LOADED),
        (Observed.FAILED, Observed.ABSENT),
    }
)
