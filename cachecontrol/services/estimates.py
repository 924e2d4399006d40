"""Where an engine keeps what it holds, as its own least-recent order must have it: an estimate, and marked as one.

Every load and every request makes an adapter the most recent of both of the engine's orders, so that the last touch of
each is all that matters: replaying those gives the same tiers as replaying everything.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from cachecontrol.engines import CAPABILITIES
from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.replay.engine_lru import EngineLru
from cachecontrol.services.leases import give_back_lease, take_lease
from cachecontrol.states import EngineKind, NodeStatus, Observed, Tier

# What was unloaded longer ago has long been pushed out by others.
_GHOSTS_FOR: Final = timedelta(hours=1)
_WITH_FILES: Final = (Observed.ON_DISK, Observed.LOADING, Observed.DRAINING)
_LEASE: Final = "estimate tiers"
# Longer than a pass takes; what a worker that was killed holds nobody else up for.
_LASTS: Final = timedelta(seconds=30)

_Touch = tuple[datetime, UUID, bool]


@dataclass(frozen=True, slots=True)
class _Held:
    """A residency as far as its tier depends on it."""

    pk: int
    node_id: int
    version_id: UUID
    observed: str
    tier: str
    tier_is_estimate: bool
    state_changed_at: datetime
    last_used_at: datetime | None

    @property
    def touched_at(self) -> datetime:
        return max(self.state_changed_at, self.last_used_at or self.state_changed_at)


@dataclass(frozen=True, slots=True)
class _Change:
    """A tier that is another one now, if nobody has said anything about the residency since it was read."""

    read: _Held
    tier: str
    is_estimate: bool


def estimate_tiers() -> int:
    """Estimate anew where everything is, but on nodes that tell; how many residencies have changed.

    One worker at a time; whoever comes meanwhile leaves it to that one.
    """
    until = take_lease(_LEASE, lasts=_LASTS)
    if until is None:
        return 0
    try:
        return _write(_changes())
    finally:
        give_back_lease(_LEASE, until=until)


def _changes() -> list[_Change]:
    nodes = list(Node.objects.filter(status=NodeStatus.UP.value).only("engine_kind", "gpu_slots", "cpu_slots"))
    held = _held_by_node()
    loaded = {node.pk: [one for one in held[node.pk] if one.observed == Observed.LOADED] for node in nodes}
    silent = [node for node in nodes if not any(one.tier and not one.tier_is_estimate for one in loaded[node.pk])]
    ghosts = _ghosts({node.pk: loaded[node.pk] for node in silent if not _frees(node)})
    changes = []
    for node in silent:
        tiers = _replay(node, loaded[node.pk], ghosts[node.pk])
        for one in held[node.pk]:
            tier, is_estimate = tiers.get(one.version_id) or _outside(one), one.version_id in tiers
            if (one.tier, one.tier_is_estimate) != (tier, is_estimate):
                changes.append(_Change(one, tier, is_estimate))
    return changes


def _held_by_node() -> defaultdict[int, list[_Held]]:
    """What is on nodes that are up, without what is nowhere or on a disk and said to be: nothing changes of that."""
    found = (
        Residency.objects.filter(node__status=NodeStatus.UP.value)
        .exclude(observed=Observed.ABSENT.value, tier="")
        .exclude(observed=Observed.ON_DISK.value, tier=Tier.DISK.value, tier_is_estimate=False)
    )
    held: defaultdict[int, list[_Held]] = defaultdict(list)
    for row in found.values_list(*(column.name for column in fields(_Held))):
        one = _Held(*row)
        held[one.node_id].append(one)
    return held


def _frees(node: Node) -> bool:
    """Whether an unload frees the engine's memory."""
    return CAPABILITIES[EngineKind(node.engine_kind)].true_unload


def _replay(node: Node, loaded: Iterable[_Held], ghosts: Iterable[_Touch]) -> dict[UUID, str]:
    """The tier of everything loaded, by the order in which the engine was last sent something for each."""
    capabilities = CAPABILITIES[EngineKind(node.engine_kind)]
    engine: EngineLru[UUID] = EngineLru(
        node.gpu_slots,
        node.cpu_slots if capabilities.has_cpu_tier else node.gpu_slots,
        frees_on_unload=capabilities.true_unload,
    )
    touches: list[_Touch] = [(one.touched_at, one.version_id, True) for one in loaded]
    for _at, version_id, stays in sorted([*touches, *ghosts], key=lambda touch: touch[0]):
        engine.load(version_id)
        if not stays:
            engine.unload(version_id)
    return engine.tiers()


def _ghosts(loaded: Mapping[int, list[_Held]]) -> defaultdict[int, list[_Touch]]:
    """By node, what was unloaded from this start of its engine and takes its place until others push it out.

    Everything that is loaded now was loaded by this start; what left before all of that is below it in the order.
    """
    ghosts: defaultdict[int, list[_Touch]] = defaultdict(list)
    since = {key: min(one.state_changed_at for one in held) for key, held in loaded.items() if held}
    if not since:
        return ghosts
    here = {(one.node_id, one.version_id) for held in loaded.values() for one in held}
    earliest = max(min(since.values()), timezone.now() - _GHOSTS_FOR)
    left = Eviction.objects.filter(node__in=since, at__gt=earliest)
    left = left.exclude(tier=Tier.DISK.value).exclude(to_tier=Tier.CPU.value)
    for key, at, version_id in left.values_list("node_id", "at", "version_id"):
        if at > since[key] and (key, version_id) not in here:
            ghosts[key].append((at, version_id, False))
    return ghosts


def _outside(one: _Held) -> str:
    return Tier.DISK.value if one.observed in _WITH_FILES else ""


@transaction.atomic
def _write(changes: Iterable[_Change]) -> int:
    known = {change.read.pk: change for change in changes}
    if not known:
        return 0
    # Whoever holds one now is about to change it; the next pass estimates it again.
    rows = Residency.objects.filter(pk__in=known).order_by("pk").select_for_update(no_key=True, skip_locked=True)
    alike: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for key, *now in rows.values_list("pk", "observed", "tier", "tier_is_estimate"):
        change = known[key]
        if now == [change.read.observed, change.read.tier, change.read.tier_is_estimate]:
            alike[change.tier, change.is_estimate].append(key)
    return sum(
        Residency.objects.filter(pk__in=keys).update(tier=tier, tier_is_estimate=is_estimate)
        for (tier, is_estimate), keys in alike.items()
    )
