"""One look for a place for a version, under the locks of its row, its pool and the node that is chosen."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.engines import CAPABILITIES
from cachecontrol.models import Node, Residency
from cachecontrol.placement.facts import Readiness, Wanted, fits
from cachecontrol.placement.miss import MissCandidate, Nowhere, Place, choose_node
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.quotas import Admission, Resource, Usage, admits
from cachecontrol.residents import Resident, rank_load
from cachecontrol.services import wishes
from cachecontrol.services.disks import admission_to_disk, drop_files, droppable_for
from cachecontrol.services.evictions import Need, NoVictim, Victim, choose_victim, evict_victim, has_room
from cachecontrol.services.loads import hot
from cachecontrol.services.loads.refusals import DISK_FULL
from cachecontrol.services.pins import staying_versions
from cachecontrol.services.places import (
    Spot,
    readiness_of,
    residents_of,
    used_of,
    wanted_of,
)
from cachecontrol.services.sizes import sizes_of
from cachecontrol.states import EngineKind, EvictionReason
from registry.actors import Actor
from registry.models import Version

# Of large pools so many nodes are looked at closely.
_LOOKED_AT: Final = 16


class Ending(StrEnum):
    """What one look came to. After ``ROOM_MADE`` look again; ``WAIT``: before long there may be a place."""

    PLACED = "placed"
    ROOM_MADE = "room_made"
    WAIT = "wait"
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"
    OVER_QUOTA = "over_quota"


class Stall(StrEnum):
    """What a load waits for: its turn, a node that is done loading, or a place that is in use."""

    TURN = "turn"
    BUSY = "busy"
    PLACE = "place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """``residency`` when a place was given; ``node`` where it would go; ``tier`` where the version is until then.

    ``over``: of what its tenant has all that its quota allows.
    """

    ending: Ending
    message: str = ""
    residency: Residency | None = None
    node: str | None = None
    stall: Stall | None = None
    tier: str = "remote"
    over: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class _View:
    """A node with what it holds, and who would leave it."""

    spot: Spot
    residents: tuple[Resident, ...]
    room: bool
    victim: Victim | NoVictim | None


def look_for_place(
    *,
    actor: Actor,
    version: Version,
    spots: Sequence[Spot],
    in_flight: Collection[UUID] = (),
    refused: Collection[Residency] = (),
) -> Look:
    """Give ``version`` a place on one of ``spots``, or make room for it, or say why not.

    The caller has locked the version and its pool, and left out the nodes on which the version is wanted already. Those
    among them that had no room for it (``refused``) are given up with the place, so they count for no quota.
    """
    wanted = wanted_of(version)
    usable = [spot for spot in spots if readiness_of(spot.node) is not Readiness.UNUSABLE and fits_on(spot, wanted)]
    if not usable:
        return Look(ending=Ending.NO_NODE, message=_("No node that is up serves this version's base model and rank."))
    loading = [spot for spot in usable if spot.may_load]
    if not loading:
        return Look(ending=Ending.WAIT, stall=Stall.BUSY, message=_("Every node is busy loading."))
    need = _without(_need(version, loading[0], in_flight), refused)
    admission = _admission(need, loading[0])
    if not admission.is_possible:
        return _over_quota(admission)
    allowed = [spot for spot in loading if not admission_to_disk(need, spot).only_itself]
    if not allowed:
        return _drop_own_files(need, spots, loading[0])
    views = _views(version, allowed, need, admission)
    choice = choose_node([_candidate(view) for view in views], wanted)
    return _act(actor, version, views, choice, need, admission, demanded_at=timezone.now())


def look_at_node(*, actor: Actor, version: Version, spot: Spot) -> Look:
    """The same for the one node that somebody named, however busy it is. The caller has locked version and pool."""
    need = _need(version, spot)
    admission = _admission(need, spot)
    if not admission.is_possible:
        return _over_quota(admission)
    if admission_to_disk(need, spot).only_itself:
        return _drop_own_files(need, [spot], spot)
    views = _views(version, [spot], need, admission)
    can_act = views[0].room or isinstance(views[0].victim, Victim)
    choice = Place(spot.node.name) if can_act else Nowhere.NO_CAPACITY
    return _act(actor, version, views, choice, need, admission)


def _drop_own_files(need: Need, spots: Sequence[Spot], spot: Spot) -> Look:
    """Its tenant has as many bytes on disks as it may: first it gives up some of its own."""
    gone = droppable_for(need, spots)
    if gone is None:
        return _over_quota(admission_to_disk(need, spot))
    drop_files(gone, spots, asked_by=need.tenant)
    return Look(
        ending=Ending.ROOM_MADE, node=spot.node.name, stall=Stall.PLACE, message=_("Room is being made for it.")
    )


def fits_on(spot: Spot, wanted: Wanted) -> bool:
    """Whether the node could ever serve the version."""
    return fits(_Host(spot.node.base_revision.digest, spot.node.max_rank), wanted)


def need_of(version: Version, policy: PolicyInForce, *, used: Usage | None, in_flight: Collection[UUID] = ()) -> Need:
    """What ``version`` asks of a pool that has this policy, while tenants hold what is ``used``."""
    size = sizes_of([version.pk])[version.pk]
    return Need(
        tenant=version.adapter.tenant.name,
        size_bytes=size,
        wants={Resource.CPU_BYTES: size},
        in_flight=frozenset(in_flight),
        pinned=staying_versions(policy.document),
        used=used,
    )


def _need(version: Version, spot: Spot, in_flight: Collection[UUID] = ()) -> Need:
    used = used_of(spot.node.base_revision.base_model_id, spot.policy)
    return need_of(version, spot.policy, used=used, in_flight=in_flight)


def _without(need: Need, refused: Collection[Residency]) -> Need:
    if need.used is None or not refused:
        return need
    used = dict(need.used.get(need.tenant, {}))
    used[Resource.CPU_BYTES] = used.get(Resource.CPU_BYTES, 0) - need.size_bytes * len(refused)
    used[Resource.GPU_SLOTS] = used.get(Resource.GPU_SLOTS, 0) - sum(one.is_hot for one in refused)
    gone = sum(one.error_code == DISK_FULL for one in refused)
    used[Resource.DISK_BYTES] = used.get(Resource.DISK_BYTES, 0) - need.size_bytes * gone
    return replace(need, used={**need.used, need.tenant: used})


def _admission(need: Need, spot: Spot) -> Admission:
    return admits(tenant=need.tenant, wants=need.wants, quotas=spot.policy.quotas, used=need.used or {})


@dataclass(frozen=True, slots=True)
class _Host:
    base_digest: str
    max_rank: int


def _views(version: Version, spots: Sequence[Spot], need: Need, admission: Admission) -> list[_View]:
    short = _shortlist(version, spots)
    if len(short) == 1 and short[0].free > 0 and short[0].cpu_bytes is None and not admission.only_itself:
        return [_View(short[0], (), room=True, victim=None)]
    held = residents_of([spot.node for spot in short], half_life=short[0].policy.scoring.half_life)
    return [_view(spot, tuple(held.get(spot.node.pk, ())), need, admission) for spot in short]


def _view(spot: Spot, residents: tuple[Resident, ...], need: Need, admission: Admission) -> _View:
    room = not admission.only_itself and has_room(spot, residents, need.size_bytes)
    victim = None if room else choose_victim(spot, residents, need, now=timezone.now())
    return _View(spot, residents, room, victim)


def _shortlist(version: Version, spots: Sequence[Spot]) -> list[Spot]:
    """Those with room, with the files, and the fullest first; without room in an order of the version's own."""

    def rank(spot: Spot) -> tuple[bool, bool, int, bytes]:
        has_room = spot.free > 0
        return not has_room, not spot.has_files, spot.free if has_room else 0, _draw(version.pk, spot.node.name)

    return sorted(spots, key=rank)[:_LOOKED_AT]


def _draw(version_id: UUID, node: str) -> bytes:
    return hashlib.blake2b(version_id.bytes + node.encode(), digest_size=8).digest()


def _candidate(view: _View) -> MissCandidate:
    node, load = view.spot.node, rank_load(view.residents)
    return MissCandidate(
        name=node.name,
        base_digest=node.base_revision.digest,
        max_rank=node.max_rank,
        readiness=readiness_of(node),
        is_cordoned=node.cordoned,
        free_places=max(view.spot.free, 1) if view.room else 0,
        victim_score=view.victim.score if isinstance(view.victim, Victim) else None,
        has_files=view.spot.has_files,
        rank_load=load,
        busy=load.rate_per_h / view.spot.policy.served_per_h,
        loads_at_run_time=CAPABILITIES[EngineKind(node.engine_kind)].runtime_load,
    )


def _act(
    actor: Actor,
    version: Version,
    views: Sequence[_View],
    choice: Place | Nowhere,
    need: Need,
    admission: Admission,
    *,
    demanded_at: datetime | None = None,
) -> Look:
    if isinstance(choice, Nowhere):
        return _nowhere(views, admission)
    view = next(view for view in views if view.spot.node.name == choice.node)
    node = view.spot.node
    # What is known of it was read before it was locked; an operator may have closed it meanwhile.
    if Node.objects.select_for_update(no_key=True).get(pk=node.pk).is_closed:
        message = _("%(node)s takes nothing new any more.") % {"node": node}
        return Look(ending=Ending.WAIT, stall=Stall.PLACE, message=message)
    if isinstance(view.victim, Victim):
        follows = _may_follow(view, view.victim, need, admission)
        if follows:
            # Both before the audit log, as whoever reports on either of them does it.
            wishes.lock_residencies(node=node, version_ids=(view.victim.resident.version_id, version.pk))
        reason = EvictionReason.QUOTA if admission.only_itself else EvictionReason.ROOM
        is_gone = evict_victim(actor=actor, node=node, victim=view.victim, asked_by=need.tenant, reason=reason)
        if not is_gone or not follows:
            message = _("Room is being made for it.")
            return Look(ending=Ending.ROOM_MADE, node=node.name, stall=Stall.PLACE, message=message)
    residency = wishes.want(actor=actor, node=node, version=version, demanded_at=demanded_at)
    hot.heat_newcomer(residency, spot=view.spot, need=need)
    tier = "disk" if view.spot.has_files else "remote"
    return Look(ending=Ending.PLACED, residency=residency, node=node.name, tier=tier)


def _may_follow(view: _View, victim: Victim, need: Need, admission: Admission) -> bool:
    """Whether one transaction may do both: one audit chain, and the place is all that was short."""
    is_own = victim.resident.tenant == need.tenant
    return is_own and not admission.only_itself and view.spot.free == 0 and view.spot.cpu_bytes is None


def _nowhere(views: Sequence[_View], admission: Admission) -> Look:
    if any(isinstance(view.victim, NoVictim) and view.victim.is_passing for view in views):
        message = _("Every place is taken by versions that are in use.")
        return Look(ending=Ending.WAIT, stall=Stall.PLACE, message=message)
    if admission.only_itself:
        return _over_quota(admission)
    return Look(ending=Ending.NO_CAPACITY, message=_("Every place is taken by versions that may not leave."))


def _over_quota(admission: Admission) -> Look:
    return Look(ending=Ending.OVER_QUOTA, message=admission.reason, over=admission.over)
