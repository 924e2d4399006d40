"""Which node a version goes to that is asked for and is on none."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cachecontrol.placement.facts import RankCost, Readiness, Wanted, fits
from cachecontrol.placement.ranks import RankLoad, added_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class MissCandidate:
    """A node of the version's pool.

    Attributes:
        free_places: how many adapters its engine can take without another leaving; below zero when it holds too many.
        victim_score: the score of the version that would leave first, None if none may leave.
        has_files: the version's files are on its disk.
        rank_load: ranks and rate of what it has loaded.
        busy: its share of what it can serve that is in use; 0 is idle, from 1 on it can take no more.
        loads_at_run_time: a load doesn't restart its engine.

    """

    name: str
    base_digest: str
    max_rank: int
    readiness: Readiness
    free_places: int
    is_cordoned: bool = False
    victim_score: float | None = None
    has_files: bool = False
    rank_load: RankLoad = field(default_factory=RankLoad)
    busy: float = 0.0
    loads_at_run_time: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """A node; when ``needs_room``, its least worthy version has to leave first."""

    node: str
    needs_room: bool = False


class Nowhere(StrEnum):
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"


def choose_node(
    nodes: Sequence[MissCandidate],
    version: Wanted,
    *,
    rate_per_h: float = 1.0,
    rank_cost: RankCost = RankCost.HIGHEST,
) -> Place | Nowhere:
    """The best node for a version that is on none, or why there is none.

    With room before without. Among those with room the readier one; then a node at work that can take more before one
    that is idle, and both before one that has enough to do (Punica, arXiv 2310.18547, §5.1); then the one whose ranks
    suit (see ``ranks``); then the one that has the files, the emptiest, and the name. Without room anywhere: the node
    whose victim is worth least. Nodes that load only by a restart come last.

    Args:
        nodes: the nodes on which the version isn't wanted yet.
        version: what is to be placed.
        rate_per_h: the requests that are expected to come with it.
        rank_cost: how the engine's kernels pay for mixed ranks.

    """
    usable = [node for node in nodes if is_usable(node) and fits(node, version)]
    if not usable:
        return Nowhere.NO_NODE
    roomy = [node for node in usable if node.free_places > 0]
    if roomy:
        best = min(
            roomy,
            key=lambda node: (
                not node.loads_at_run_time,
                node.readiness,
                _standing_by(node),
                added_cost(node.rank_load, rank=version.rank, rate_per_h=rate_per_h, model=rank_cost),
                not node.has_files,
                -node.free_places,
                node.name,
            ),
        )
        return Place(best.name)
    return _replace(usable)


def is_usable(node: MissCandidate) -> bool:
    return node.readiness is not Readiness.UNUSABLE and not node.is_cordoned


def _standing_by(node: MissCandidate) -> int:
    """A node at work with capacity left before an idle one before a saturated one."""
    if node.busy >= 1:
        return 2
    return 0 if node.busy > 0 else 1


def _replace(nodes: Sequence[MissCandidate]) -> Place | Nowhere:
    scored = [(node.victim_score, node) for node in nodes if node.victim_score is not None]
    if not scored:
        return Nowhere.NO_CAPACITY
    _score, best = min(
        scored,
        key=lambda pair: (
            not pair[1].loads_at_run_time,
            pair[1].readiness,
            pair[0],
            not pair[1].has_files,
            pair[1].name,
        ),
    )
    return Place(best.name, needs_room=True)
