"""Where an engine keeps what it holds, as its own least-recent order must have it: an estimate, and marked as one.

Every load and every request makes an adapter the most recent of both of the engine's orders, so that the last touch of
each is all that matters: replaying those gives the same tiers as replaying everything.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils import timezone

from cachecontrol.engines import CAPABILITIES
from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.replay.engine_lru import EngineLru
from cachecontrol.states import EngineKind, NodeStatus, Observed, Tier

# What was unloaded longer ago has long been pushed out by others.
_GHOSTS_FOR: Final = timedelta(hours=1)
_WITH_FILES: Final = (Observed.ON_DISK, Observed.LOADING, Observed.DRAINING)


def estimate_tiers() -> int:
    """Estimate anew where everything is, but on nodes that tell; how many residencies have changed."""
    nodes = Node.objects.filter(status=NodeStatus.UP.value).order_by("pk")
    return sum(_estimate(node) for node in nodes)


def _estimate(node: Node) -> int:
    held = list(Residency.objects.filter(node=node).exclude(observed=Observed.ABSENT.value, tier=""))
    loaded = [residency for residency in held if residency.observed == Observed.LOADED]
    if any(residency.tier and not residency.tier_is_estimate for residency in loaded):
        return 0
    tiers = _replay(node, loaded)
    changed = 0
    for residency in held:
        tier = tiers.get(residency.version_id) or _outside(residency)
        changed += _write(residency, tier, is_estimate=residency.version_id in tiers)
    return changed


def _replay(node: Node, loaded: list[Residency]) -> dict[UUID, str]:
    """The tier of everything loaded, by the order in which the engine was last sent something for each."""
    capabilities = CAPABILITIES[EngineKind(node.engine_kind)]
    engine: EngineLru[UUID] = EngineLru(
        node.gpu_slots,
        node.cpu_slots if capabilities.has_cpu_tier else node.gpu_slots,
        frees_on_unload=capabilities.true_unload,
    )
    touches = [(_touched_at(residency), residency.version_id, True) for residency in loaded]
    touches += [] if capabilities.true_unload else _ghosts(node, loaded)
    for _at, version_id, stays in sorted(touches, key=lambda touch: touch[0]):
        engine.load(version_id)
        if not stays:
            engine.unload(version_id)
    return engine.tiers()


def _ghosts(node: Node, loaded: list[Residency]) -> list[tuple[datetime, UUID, bool]]:
    """What was unloaded from this start of the engine and still takes its place until others push it out.

    Everything that is loaded now was loaded by this start; what left before all of that is below it in the order.
    """
    if not loaded:
        return []
    since = max(min(residency.state_changed_at for residency in loaded), timezone.now() - _GHOSTS_FOR)
    here = {residency.version_id for residency in loaded}
    left = (
        Eviction.objects.filter(node=node, at__gt=since).exclude(tier=Tier.DISK.value).exclude(to_tier=Tier.CPU.value)
    )
    return [
        (at, version_id, False) for at, version_id in left.values_list("at", "version_id") if version_id not in here
    ]


def _touched_at(residency: Residency) -> datetime:
    return max(residency.state_changed_at, residency.last_used_at or residency.state_changed_at)


def _outside(residency: Residency) -> str:
    return Tier.DISK.value if residency.observed in _WITH_FILES else ""


def _write(residency: Residency, tier: str, *, is_estimate: bool) -> bool:
    if (residency.tier, residency.tier_is_estimate) == (tier, is_estimate):
        return False
    same = Residency.objects.filter(pk=residency.pk, observed=residency.observed)
    return bool(same.update(tier=tier, tier_is_estimate=is_estimate))
