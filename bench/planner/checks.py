"""What is wrong with a plan, said independently of how it was made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cachecontrol.placement.facts import NOTHING, Claim, Holding, TenantLimits, Unplaced, fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from cachecontrol.placement.facts import Need, Plan, PlannedNode


def violations(plan: Plan, previous: Holding | None = None) -> list[str]:
    """Everything that a plan may never do, as far as this one does it; empty for a sound plan."""
    before = previous or Holding()
    return [
        *(f"{name} is unknown" for name in {*plan.loaded, *plan.hot, *plan.disk} - plan.nodes.keys()),
        *(problem for node in plan.nodes.values() for problem in _of_node(plan, node)),
        *(problem for node in plan.nodes.values() for problem in _of_closed_node(plan, node, before)),
        *_of_tenants(plan),
        *_of_versions(plan),
    ]


def _of_node(plan: Plan, node: PlannedNode) -> Iterator[str]:
    loaded, hot, disk = (kind.get(node.name, NOTHING) for kind in (plan.loaded, plan.hot, plan.disk))
    here = [plan.needs[version_id].version for version_id in loaded]
    files = [plan.needs[version_id].version for version_id in loaded | disk]
    if len(loaded) > node.room:
        yield f"{node.name}: {len(loaded)} loaded in {node.room} places"
    if node.cpu_bytes is not None and sum(version.size_bytes for version in here) > node.cpu_bytes:
        yield f"{node.name}: more bytes than its engine may hold"
    if node.disk_bytes is not None and sum(version.size_bytes for version in files) > node.disk_bytes:
        yield f"{node.name}: more bytes than its disk may hold"
    if not all(fits(node, version) for version in files):
        yield f"{node.name}: another base or too high a rank"
    if not hot <= loaded or len(hot) > node.hot_limit:
        yield f"{node.name}: {len(hot)} hot, {len(hot - loaded)} of them not loaded"
    if loaded & disk:
        yield f"{node.name}: on disk alone and loaded"
    if sum(version.is_pinned for version in here) > max(0, node.gpu_slots - 1):
        yield f"{node.name}: every slot pinned"


def _of_closed_node(plan: Plan, node: PlannedNode, before: Holding) -> Iterator[str]:
    loaded, disk = plan.loaded.get(node.name, NOTHING), plan.disk.get(node.name, NOTHING)
    if not node.is_keeping and (loaded or disk):
        yield f"{node.name}: something on a node that is down or drained"
    was = before.loaded.get(node.name, NOTHING)
    new = (loaded - was) | (disk - was - before.disk.get(node.name, NOTHING))
    if not node.is_open and new:
        yield f"{node.name}: something new on a node that is closed"
    if any(node.name in plan.needs[version_id].version.unwanted_on for version_id in new):
        yield f"{node.name}: something new that is not wanted there"


def _of_tenants(plan: Plan) -> Iterator[str]:
    cpu = _bytes_by_tenant(plan, plan.loaded.values())
    files = cpu + _bytes_by_tenant(plan, plan.disk.values())
    hot = Counter(plan.needs[version_id].version.tenant for held in plan.hot.values() for version_id in held)
    for tenant in files:
        limits = plan.settings.limits_of(tenant)
        for what, has, limit in (
            ("bytes in engines", cpu[tenant], limits.cpu_bytes),
            ("bytes on disks", files[tenant], limits.disk_bytes),
            ("slots", hot[tenant], limits.hot),
        ):
            if limit is not None and has > limit:
                yield f"{tenant}: {has} {what}, {limit} allowed"
        if limits.places_per_node is not None and _most_on_a_node(plan, tenant) > limits.places_per_node:
            yield f"{tenant}: more places on a node than allowed"


def _of_versions(plan: Plan) -> Iterator[str]:
    homes = Counter(version_id for held in plan.loaded.values() for version_id in held)
    for version_id, need in plan.needs.items():
        if need.claim is not Claim.STAYING and homes[version_id] > need.replicas:
            yield f"{version_id}: on {homes[version_id]} nodes, {need.replicas} wanted"
        if (homes[version_id] < need.replicas) != (version_id in plan.unplaced):
            yield f"{version_id}: on {homes[version_id]} nodes of {need.replicas}, and that is not said"
    by_places = [node for node in plan.nodes.values() if node.is_open and _counts_places_alone(node)]
    for version_id, reason in plan.unplaced.items():
        need = plan.needs[version_id]
        if reason is Unplaced.NO_ROOM and any(_could_take(plan, node, need) for node in by_places):
            yield f"{version_id}: waits for room although there is some"


def _counts_places_alone(node: PlannedNode) -> bool:
    return node.cpu_bytes is None and node.disk_bytes is None


def _could_take(plan: Plan, node: PlannedNode, need: Need) -> bool:
    """Whether there is room for one more replica, or would be without one that is worth clearly less."""
    loaded, version = plan.loaded.get(node.name, NOTHING), need.version
    if not fits(node, version) or version.version_id in loaded or node.name in version.unwanted_on:
        return False
    if version.is_pinned or plan.settings.limits_of(version.tenant) != TenantLimits():
        return False
    if len(loaded) < node.room:
        return True
    lowest = min((plan.needs[other].standing for other in loaded), default=float("inf"))
    return bool(loaded) and lowest < need.standing - plan.settings.swap_margin


def _bytes_by_tenant(plan: Plan, held: Iterable[frozenset[UUID]]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for version_ids in held:
        for version_id in version_ids:
            sums[plan.needs[version_id].version.tenant] += plan.needs[version_id].version.size_bytes
    return sums


def _most_on_a_node(plan: Plan, tenant: str) -> int:
    counts = (
        sum(plan.needs[version_id].version.tenant == tenant for version_id in held) for held in plan.loaded.values()
    )
    return max(counts, default=0)
