"""From rows to what placement decides on. Nodes are locked by the caller, so that two don't take the same place."""

from collections import defaultdict
from collections.abc import Iterable

from cachecontrol.models import Node, Residency
from cachecontrol.placement import Candidate, Readiness, Resident, Wanted
from cachecontrol.reconcile import is_settled
from cachecontrol.selectors import alias_targets, lock_nodes, wanted_residents
from cachecontrol.states import WORTH_ANOTHER_TRY, Desired, NodeStatus, Observed
from registry.models import BaseModelRevision, Version


def lock_nodes_for(version: Version) -> list[Node]:
    """Every node of the version's base revision, locked in one order."""
    revisions = BaseModelRevision.objects.filter(digest=version.base_revision.digest)
    return lock_nodes(Node.objects.filter(base_revision__in=revisions))


def wanted_of(version: Version) -> Wanted:
    return Wanted(base_digest=version.base_revision.digest, rank=version.rank or 0)


def candidates(nodes: Iterable[Node], version: Version) -> list[Candidate]:
    """The nodes as placement sees them for ``version``."""
    known = list(nodes)
    residents: defaultdict[int, list[Residency]] = defaultdict(list)
    for residency in wanted_residents().filter(node__in=known):
        residents[residency.node_id].append(residency)
    targets = alias_targets(versions={r.version_id for held in residents.values() for r in held})
    on_disk = set(
        Residency.objects.filter(node__in=known, version=version, observed=Observed.ON_DISK.value).values_list(
            "node_id", flat=True
        )
    )
    return [
        Candidate(
            name=node.name,
            base_digest=node.base_revision.digest,
            max_rank=node.max_rank,
            readiness=readiness_of(node),
            places=node.cpu_slots,
            residents=tuple(_resident(r, is_target=r.version_id in targets) for r in residents[node.pk]),
            has_files=node.pk in on_disk,
        )
        for node in known
    ]


def readiness_of(node: Node) -> Readiness:
    if node.status != NodeStatus.UP:
        return Readiness.UNUSABLE
    if not node.engine_healthy:
        return Readiness.RECOVERING
    return Readiness.TAINTED if node.tainted else Readiness.READY


def is_broken(residency: Residency) -> bool:
    """Whether it failed for good: nothing more happens until somebody wants it again."""
    return (
        residency.observed == Observed.FAILED
        and residency.acted_generation == residency.generation
        and residency.error_class not in WORTH_ANOTHER_TRY
    )


def _resident(residency: Residency, *, is_target: bool) -> Resident:
    uses = (residency.last_demand_at, getattr(residency, "last_request_at", None))
    return Resident(
        version_id=residency.version_id,
        is_settled=is_settled(
            desired=Desired(residency.desired),
            observed=Observed(residency.observed),
            generation=residency.generation,
            acted_generation=residency.acted_generation,
        ),
        is_broken=is_broken(residency),
        is_alias_target=is_target,
        last_used_at=max((use for use in uses if use is not None), default=None),
    )
