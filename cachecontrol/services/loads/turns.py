"""Serving the load queue: whose turn it is gets a place, and who comes next gets its files."""

import logging
import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction

from cachecontrol.models import LoadRequest, Residency
from cachecontrol.placement.facts import Readiness
from cachecontrol.policies import active_policy
from cachecontrol.selectors import lock_node
from cachecontrol.services import wishes
from cachecontrol.services.disks import admission_to_disk
from cachecontrol.services.leases import take_lease
from cachecontrol.services.loads import queue
from cachecontrol.services.loads.attempts import Ask, Demand, demand_place
from cachecontrol.services.loads.placing import Stall, fits_on, need_of
from cachecontrol.services.loads.refusals import given_up_lately
from cachecontrol.services.places import Spot, lock_pool, pool_nodes, readiness_of, spots_for, used_of, wanted_of
from cachecontrol.states import DemandState, Desired, LoadState, Observed
from registry import dispatch
from registry.actors import system_actor
from registry.models import Version
from registry.selectors import versions_with_relations

logger = logging.getLogger(__name__)

# One pass gives no more turns than this; the next pass follows soon.
_TURNS: Final = 16
_AHEAD: Final = 4
_LOOK_AGAIN: Final = timedelta(seconds=0.25)


def serve_queues() -> None:
    """Serve the queue of every pool that has one. One pool's trouble doesn't stop the others."""
    pools = LoadRequest.objects.filter(ended_at=None).order_by().values_list("pool", flat=True).distinct()
    for pool in pools:
        try:
            serve_pool(pool)
        except Exception:
            logger.exception("the load queue of pool %s is left to the next pass", pool)


def serve_pool(pool: str) -> None:
    """End what is over, then give places in turn until no node may load more; then fetch ahead."""
    queue.settle(pool)
    waiting = queue.queued_in(pool)
    node = pool_nodes(pool).first()
    if not waiting or node is None:
        return
    claims = queue.claims_of(pool, {request.tenant.name for request in waiting}, active_policy(node))
    left, waits_for_place = _give_turns(queue.in_turn(waiting, claims))
    for request in left[:_AHEAD]:
        _fetch_ahead(request)
    if waits_for_place:
        look_again_soon(pool)


def look_again_soon(pool: str) -> None:
    """Nobody tells when a place is in use no more: have the queue served again shortly, once for all who ask."""
    if take_lease(f"look again at {pool}", lasts=_LOOK_AGAIN):
        dispatch.nudge(dispatch.SERVE_LOAD_QUEUE, after_s=_LOOK_AGAIN.total_seconds(), pool=pool)


def _give_turns(order: Sequence[LoadRequest]) -> tuple[list[LoadRequest], bool]:
    """Who still waits afterwards, and whether somebody does for a place that is in use.

    Once every node that serves a rank is busy, no version of it or more is looked at.
    """
    left: list[LoadRequest] = []
    waits_for_place = False
    looks, busy_from = 0, math.inf
    for request in order:
        rank = request.version.rank or 0
        if looks == _TURNS or rank >= busy_from:
            left.append(request)
            continue
        demand, looks = _turn(request), looks + 1
        if demand.state in (DemandState.QUEUED, DemandState.SHED):
            left.append(request)
        waits_for_place = waits_for_place or demand.stall is Stall.PLACE
        if demand.stall is Stall.BUSY:
            busy_from = rank
    return left, waits_for_place


def _turn(request: LoadRequest) -> Demand:
    """Its turn; what was found to be loaded, refused or lost meanwhile leaves the queue. It waits no longer for it."""
    ask = Ask(wait=queue.Wait(longest=timedelta()), is_turn=True)
    demand = demand_place(actor=system_actor("placement"), version_id=request.version_id, ask=ask)
    _leave_if_over(request, demand)
    return demand


@transaction.atomic
def _leave_if_over(request: LoadRequest, demand: Demand) -> None:
    locked = LoadRequest.objects.select_for_update(no_key=True).get(pk=request.pk)
    if locked.state != LoadState.QUEUED:
        return
    if demand.state in (DemandState.LOADING, DemandState.LOADED):
        queue.end(locked, LoadState.DONE)
    elif demand.state in (DemandState.REFUSED, DemandState.FAILED, DemandState.NO_NODE):
        queue.end(locked, LoadState.REFUSED, demand.message)


@transaction.atomic
def _fetch_ahead(request: LoadRequest) -> None:
    """Have the files brought to the node that is likely to load the version, before there is a place for it."""
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=request.version_id)
    if not wishes.is_servable(version):
        return
    lock_pool(version.base_revision.digest)
    spots = spots_for(version)
    if any(spot.has_files or spot.wants_it for spot in spots) or _is_fetched_anywhere(request):
        return
    spot = min(_open_to(version, spots), key=_soonest, default=None)
    if spot is not None and not _is_over_on_disk(version, spot):
        reason = "it is next in the load queue"
        wishes.want_on_disk(actor=system_actor("placement"), node=lock_node(spot.node), version=version, reason=reason)


def _open_to(version: Version, spots: Sequence[Spot]) -> list[Spot]:
    """Those that may load it, but for who had no room for it a moment ago."""
    wanted, full = wanted_of(version), given_up_lately(version)
    usable = [spot for spot in spots if readiness_of(spot.node) is not Readiness.UNUSABLE and fits_on(spot, wanted)]
    return [spot for spot in usable if spot.node.pk not in full]


def _is_over_on_disk(version: Version, spot: Spot) -> bool:
    used = used_of(spot.node.base_revision.base_model_id, spot.policy)
    return admission_to_disk(need_of(version, spot.policy, used=used), spot).only_itself


def _is_fetched_anywhere(request: LoadRequest) -> bool:
    on_the_way = Residency.objects.filter(version=request.version_id, desired=Desired.DISK.value)
    return on_the_way.exclude(observed=Observed.FAILED.value).exists()


def _soonest(spot: Spot) -> tuple[int, int, str]:
    return spot.loading, -spot.free, spot.node.name
