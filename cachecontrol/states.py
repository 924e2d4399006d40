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


class Desired(StrEnum):
    """Where a version ought to be on a node."""

    GPU = "gpu"
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
    """What a gateway is told when it asks for a version; all but the first two end its wait."""

    LOADING = "loading"
    LOADED = "loaded"
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"
    REFUSED = "refused"
    FAILED = "failed"


OBSERVED_AFTER: Final[dict[Outcome, Observed]] = {
    Outcome.FETCHING: Observed.FETCHING,
    Outcome.ON_DISK: Observed.ON_DISK,
    Outcome.LOADING: Observed.LOADING,
    Outcome.LOADED: Observed.LOADED,
    Outcome.EVICTED: Observed.ABSENT,
    Outcome.FAILED: Observed.FAILED,
}
ENDS: Final = frozenset({Outcome.LOADED, Outcome.EVICTED, Outcome.FAILED})
WORTH_ANOTHER_TRY: Final = frozenset({ErrorClass.TRANSIENT, ErrorClass.CAPACITY})

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
