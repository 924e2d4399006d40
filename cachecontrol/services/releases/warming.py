"""Having a version loaded on so many nodes, one look at a time; the port of releases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from cachecontrol.drift import is_broken
from cachecontrol.errors import NoCapacity, NodeRefused, VersionNotServable
from cachecontrol.models import Residency
from cachecontrol.services import wishes
from cachecontrol.services.loads.placing import fits_on
from cachecontrol.services.places import Spot, may_answer, readiness_of, spots_for, wanted_of
from cachecontrol.services.residencies import warm_version
from cachecontrol.states import Desired, Observed
from registry.actors import Actor
from registry.models import Version
from registry.selectors import get_version_by_id
from releases.ports import Warmth

# Nodes that are tried in one look: each is a transaction that holds the pool.
_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class _Standing:
    """How the version stands on the nodes that could hold it, those first that hold the other one."""

    ready: Sequence[Spot]
    coming: Sequence[Spot]
    failed: Sequence[tuple[Spot, str]]
    free: Sequence[Spot]


def warm_up(*, actor: Actor, version_id: UUID, like: UUID, nodes: int | None, since: datetime) -> Warmth:
    """Have the version loaded on ``nodes`` nodes, where ``like`` is loaded first; None: on as many as hold ``like``.

    Where an engine is full, what is worth least there leaves it. What failed for good since ``since`` isn't tried
    again, before that it is.
    """
    version = get_version_by_id(version_id=version_id)
    spots = [spot for spot in spots_for(version) if fits_on(spot, wanted_of(version)) and _is_open(spot)]
    homes = _homes_of(like)
    wanted = nodes or max(1, min(len(homes), len(spots)))
    trouble = _hindrance(version, spots, wanted)
    if trouble:
        return Warmth(ready=0, wanted=wanted, trouble=trouble)
    standing = _standing(version, spots, homes, since)
    missing = wanted - len(standing.ready) - len(standing.coming)
    refusal = _load(actor, version, standing.free[:_TRIES], missing) if missing > 0 else ""
    return Warmth(
        ready=min(len(standing.ready), wanted),
        wanted=wanted,
        trouble=_too_many_failed(standing, len(spots), wanted),
        note=refusal or _on_the_way(standing.coming),
    )


def _is_open(spot: Spot) -> bool:
    """Whether an operator lets the version be there: a cordoned node keeps what it has."""
    return not spot.node.draining and (spot.wants_it or not spot.node.cordoned)


def _homes_of(version_id: UUID) -> frozenset[int]:
    """The nodes that answer with the version now."""
    held = Residency.objects.select_related("node").filter(version_id=version_id, desired=Desired.GPU.value)
    loaded = held.filter(observed=Observed.LOADED.value)
    return frozenset(residency.node_id for residency in loaded if may_answer(residency.node))


def _hindrance(version: Version, spots: Sequence[Spot], wanted: int) -> str:
    if not wishes.is_servable(version):
        return _("%(version)s is %(state)s.") % {"version": version, "state": version.state}
    if not spots:
        return _("No node serves this version's base model and rank.")
    if len(spots) < wanted:
        return _("Only %(there)d nodes serve this version's base model and rank.") % {"there": len(spots)}
    return ""


def _standing(version: Version, spots: Iterable[Spot], homes: frozenset[int], since: datetime) -> _Standing:
    held = {
        residency.node_id: residency
        for residency in Residency.objects.filter(version=version, desired=Desired.GPU.value)
    }
    ready: list[Spot] = []
    coming: list[Spot] = []
    failed: list[tuple[Spot, str]] = []
    free: list[Spot] = []
    for spot in sorted(spots, key=lambda spot: (spot.node.pk not in homes, readiness_of(spot.node), spot.node.name)):
        residency = held.get(spot.node.pk)
        if residency is not None and is_broken(residency) and residency.state_changed_at >= since:
            failed.append((spot, residency.message))
        elif not may_answer(spot.node):
            continue
        elif residency is None or is_broken(residency):
            if not spot.node.is_closed:
                free.append(spot)
        elif residency.observed == Observed.LOADED and residency.acted_generation == residency.generation:
            (ready if spot.node.engine_healthy else coming).append(spot)
        else:
            coming.append(spot)
    return _Standing(ready, coming, failed, free)


def _load(actor: Actor, version: Version, free: Iterable[Spot], missing: int) -> str:
    """Want it on that many of the nodes; why not on more of them, if it can't be."""
    refusal = _("The other nodes are not up.")
    for spot in free:
        try:
            warm_version(actor=actor, node=spot.node, version=version)
        except (NoCapacity, NodeRefused, VersionNotServable) as error:
            refusal = f"{spot.node}: {error}"
            continue
        missing -= 1
        if not missing:
            return ""
    return refusal


def _too_many_failed(standing: _Standing, nodes: int, wanted: int) -> str:
    if nodes - len(standing.failed) >= wanted:
        return ""
    spot, message = standing.failed[0]
    return _("It can't be loaded on %(node)s: %(message)s") % {"node": spot.node, "message": message}


def _on_the_way(coming: Sequence[Spot]) -> str:
    if not coming:
        return ""
    names = ", ".join(spot.node.name for spot in coming[:3])
    return _("It is on its way to %(nodes)s.") % {"nodes": names}
