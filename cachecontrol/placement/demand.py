"""How much of a pool each version needs: on how many nodes, with what share of its load, and before whom."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from cachecontrol.placement.facts import Claim, Need, PlannedVersion, PlanSettings

# Above every score: what class a version is in counts before what it is worth.
_CLASS: Final = 1e6
_WORTH: Final = 1e5


def replicas_of(version: PlannedVersion, settings: PlanSettings, *, node_per_h: float, current: int = 0) -> int:
    """On how many nodes the version is wanted: its rate over what a node serves (``node_per_h``, requests per hour).

    Fewer than the ``current`` ones only when its rate is clearly below what those are for, so that a rate at a
    boundary doesn't load and unload.
    """
    per_node = node_per_h * settings.fill
    enough = math.ceil(version.rate_per_h / per_node)
    if current > enough:
        enough = min(current, math.ceil(version.rate_per_h / (per_node * settings.shrink_below)))
    if version.rate_per_h <= settings.warm_rate_per_h:
        enough = 1 if version.is_pinned or version.is_wanted_on_release else 0
    return max(min(enough, settings.max_replicas), version.min_replicas, int(version.is_pinned))


def needs_of(
    versions: Iterable[PlannedVersion], settings: PlanSettings, *, node_per_h: float, current: Mapping[UUID, int]
) -> dict[UUID, Need]:
    """The need of every version; ``current``: on how many nodes each is."""
    known = list(versions)
    guaranteed, kept = within_floors(known, settings), within_disk_floors(known, settings)
    return {
        version.version_id: need_of(
            version,
            settings,
            node_per_h=node_per_h,
            current=current.get(version.version_id, 0),
            is_guaranteed=version.version_id in guaranteed,
            keeps_files=version.version_id in kept,
        )
        for version in known
    }


def need_of(
    version: PlannedVersion,
    settings: PlanSettings,
    *,
    node_per_h: float,
    current: int,
    is_guaranteed: bool,
    keeps_files: bool = False,
) -> Need:
    replicas = replicas_of(version, settings, node_per_h=node_per_h, current=current)
    copies = max(replicas, 1)
    share = version.rate_per_h / copies
    claim = _claim(version, is_wanted=replicas > 0, is_guaranteed=is_guaranteed)
    worth = max(-_WORTH, min(_WORTH, version.keep - math.log(copies)))
    return Need(
        version=version,
        replicas=replicas,
        share_per_h=share,
        standing=claim * _CLASS + worth,
        claim=claim,
        is_hot=version.is_pinned or share > settings.hot_rate_per_h,
        keeps_files=keeps_files,
    )


def within_floors(versions: Iterable[PlannedVersion], settings: PlanSettings) -> set[UUID]:
    """What the tenants' floors guarantee: of each tenant the versions worth most, as far as its floors reach."""
    by_tenant: defaultdict[str, list[PlannedVersion]] = defaultdict(list)
    for version in versions:
        limits = settings.limits_of(version.tenant)
        if (limits.hot_floor or limits.cpu_floor_bytes) and version.rate_per_h > settings.warm_rate_per_h:
            by_tenant[version.tenant].append(version)
    return {version_id for tenant, owned in by_tenant.items() for version_id in _within_floor(owned, settings, tenant)}


def within_disk_floors(versions: Iterable[PlannedVersion], settings: PlanSettings) -> set[UUID]:
    """Whose files the tenants' floors for disks guarantee: those worth most, as far as the floors reach."""
    left = {tenant: limits.disk_floor_bytes for tenant, limits in settings.limits.items() if limits.disk_floor_bytes}
    owned = [version for version in versions if version.tenant in left]
    kept = set()
    for version in sorted(owned, key=lambda version: (-version.keep, version.version_id)):
        if version.size_bytes <= left[version.tenant]:
            left[version.tenant] -= version.size_bytes
            kept.add(version.version_id)
    return kept


def _claim(version: PlannedVersion, *, is_wanted: bool, is_guaranteed: bool) -> Claim:
    if version.is_pinned:
        return Claim.PINNED
    if not is_wanted:
        return Claim.STAYING
    if is_guaranteed or version.min_replicas > 0 or version.is_wanted_on_release:
        return Claim.GUARANTEED
    return Claim.LOAD


def _within_floor(versions: list[PlannedVersion], settings: PlanSettings, tenant: str) -> Iterable[UUID]:
    limits = settings.limits_of(tenant)
    size = 0
    ordered = sorted(versions, key=lambda version: (-version.keep, version.version_id))
    for place, version in enumerate(ordered, start=1):
        size += version.size_bytes
        if place <= limits.hot_floor or size <= limits.cpu_floor_bytes:
            yield version.version_id
