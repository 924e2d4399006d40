"""Which node a version goes to, and which version makes room for it: a pure decision."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Final
from uuid import UUID

# A version that was asked for so recently counts as in use.
IN_USE: Final = timedelta(seconds=10)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Readiness(IntEnum):
    """How soon a node can load something; the lower the better."""

    READY = 0
    # An earlier load failed inside its engine and may have left something in a slot.
    TAINTED = 1
    # Its agent reports, its engine is not well: it will be loaded when it is.
    RECOVERING = 2
    UNUSABLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A version wanted on a node. ``is_settled``: no load is on its way; ``is_broken``: it failed for good."""

    version_id: UUID
    is_settled: bool
    is_broken: bool
    is_alias_target: bool
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node as placement sees it; ``places`` is how many versions it keeps loaded (in GPU or CPU memory)."""

    name: str
    base_digest: str
    max_rank: int
    readiness: Readiness
    places: int
    residents: tuple[Resident, ...]
    has_files: bool = False

    @property
    def free(self) -> int:
        return self.places - len(self.residents)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The version to place, by what a node must match."""

    base_digest: str
    rank: int


@dataclass(frozen=True, slots=True)
class Place:
    """A node; when ``victim`` is given, that version has to leave it first."""

    node: str
    victim: UUID | None = None


class Nowhere(StrEnum):
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"


def fits(node: Candidate, version: Wanted) -> bool:
    """Whether the node could ever serve the version."""
    return node.base_digest == version.base_digest and version.rank <= node.max_rank


def choose_node(nodes: Iterable[Candidate], version: Wanted, *, now: datetime) -> Place | Nowhere:
    """The best node for a version that is on none.

    With room before without; then the readier one, the files there already, the most room, and the name.
    Without room anywhere: the node whose victim was used least recently.
    """
    usable = [node for node in nodes if node.readiness is not Readiness.UNUSABLE and fits(node, version)]
    if not usable:
        return Nowhere.NO_NODE
    roomy = [node for node in usable if node.free > 0]
    if roomy:
        best = min(roomy, key=lambda node: (node.readiness, not node.has_files, -node.free, node.name))
        return Place(best.name)
    return _replace(usable, now)


def choose_victim(node: Candidate, *, now: datetime) -> Resident | None:
    """The version that may leave ``node`` with the least harm, or None.

    Never one that an alias points to, that is on its way, or that was used within ``IN_USE``. What failed for good
    takes a place for nothing and leaves first.
    """
    removable = [resident for resident in node.residents if _may_leave(resident, now)]
    return min(removable, key=_last_use, default=None)


def _replace(nodes: Iterable[Candidate], now: datetime) -> Place | Nowhere:
    pairs = [(node, victim) for node in nodes if (victim := choose_victim(node, now=now)) is not None]
    if not pairs:
        return Nowhere.NO_CAPACITY
    node, victim = min(pairs, key=lambda pair: (pair[0].readiness, _last_use(pair[1]), pair[0].name))
    return Place(node.name, victim=victim.version_id)


def _may_leave(resident: Resident, now: datetime) -> bool:
    if resident.is_broken:
        return True
    if resident.is_alias_target or not resident.is_settled:
        return False
    return resident.last_used_at is None or resident.last_used_at + IN_USE <= now


def _last_use(resident: Resident) -> tuple[bool, datetime, str]:
    return not resident.is_broken, resident.last_used_at or _NEVER, str(resident.version_id)
