"""One attempt to have a version loaded somewhere: a place, a place in the queue, or a reason. One transaction."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.admission import Shed, expected_wait_s
from cachecontrol.drift import is_broken
from cachecontrol.models import LoadRequest, Residency
from cachecontrol.policies import active_policy
from cachecontrol.services import wishes
from cachecontrol.services.loads import queue
from cachecontrol.services.loads.failures import pause_of
from cachecontrol.services.loads.placing import Ending, Look, Stall, look_for_place
from cachecontrol.services.loads.refusals import (
    give_up,
    given_up_lately,
    has_no_room,
    lock_refused,
    next_try,
    refused_among,
)
from cachecontrol.services.places import (
    USUAL_LOAD_MS,
    Spot,
    lock_pool,
    may_answer,
    spots_for,
)
from cachecontrol.services.reconcile import take_command
from cachecontrol.states import DemandState, Desired, LoadState, Observed
from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Version
from releases.warmth import cooled_versions, left_by_rollback

# How exactly the last demand is kept: it only says who is in use.
_DEMAND_PRECISION: Final = timedelta(seconds=1)
# What a quota calls a tenant's part of the queue.
_QUEUE_SHARE: Final = "queue_share"
# With each but the last one victim may leave.
_TRIES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What goes with a demand. ``in_flight``: versions that whoever asks has answering now.

    ``is_last``: it is not looked again at once; where room was made, it is the queue's to use it.
    """

    wait: queue.Wait = field(default_factory=queue.Wait)
    in_flight: Collection[UUID] = ()
    is_turn: bool = False
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Demand:
    """The answer to a demand: a state, a sentence for people, and where the version is while it is not loaded.

    ``code`` says more than the state of why it isn't loaded: an agent's word (``disk_full``, ``engine_full``,
    ``queue_full`` …), ``over_quota``, or why the queue didn't take it (``admission.Shed``). ``position`` is its place
    in the queue from 1; ``retry_after_s`` is given with a refusal that passes, ``stall`` with a wait. ``wait_s`` is how
    long a request may wait for it, by its tenant's class of service. ``over``: what its tenant's quota was short of.
    """

    state: DemandState
    message: str = ""
    code: str = ""
    tier: str | None = None
    position: int | None = None
    retry_after_s: int | None = None
    stall: Stall | None = None
    wait_s: float | None = None
    over: tuple[str, ...] = ()


def wanted_residencies(version_id: UUID) -> list[Residency]:
    """Where the version is wanted in an engine, each with its node."""
    found = Residency.objects.select_related("node").filter(version=version_id, desired=Desired.GPU.value)
    return list(found.order_by("pk"))


def state_on_nodes(residencies: Iterable[Residency]) -> Demand | None:
    """How the version stands on nodes that can serve or load it now; None if it is on none of them.

    A node that had no room for it is none of them: another may have.
    """
    on_the_way = None
    for residency in residencies:
        if not may_answer(residency.node) or is_broken(residency):
            continue
        _touch(residency)
        if not residency.node.engine_healthy:
            continue
        if residency.observed == Observed.LOADED:
            return Demand(DemandState.LOADED)
        if not has_no_room(residency):
            on_the_way = on_the_way or _pending(residency)
    return on_the_way


@dataclass(frozen=True, slots=True)
class RoomMade:
    """A version was asked to leave ``node``: look again."""

    node: str


def demand_place(*, actor: Actor, version_id: UUID, ask: Ask) -> Demand:
    """Attempts until there is an answer: room is made by one victim at a time."""
    found: Demand | RoomMade | None = None
    for left in reversed(range(_TRIES)):
        node = found.node if isinstance(found, RoomMade) else None
        found = attempt(actor=actor, version_id=version_id, ask=replace(ask, is_last=not left), node=node)
        if isinstance(found, Demand):
            return found
    raise RuntimeError("the last attempt gives an answer")


@transaction.atomic
def attempt(*, actor: Actor, version_id: UUID, ask: Ask, node: str | None = None) -> Demand | RoomMade:
    """One look under locks, at ``node`` first if one is named. The last attempt gives an answer.

    The command to load leaves with the commit, before anything else does, and without waiting for a worker.
    """
    due: list[Callable[[], None]] = []
    transaction.on_commit(lambda: [send() for send in due], robust=True)
    locked, was_left = _lock_version(version_id)
    if not wishes.is_servable(locked):
        return Demand(DemandState.REFUSED, _("The version is %(state)s.") % {"state": locked.state})
    if was_left and cooled_versions(versions=[version_id]):
        return Demand(DemandState.REFUSED, _("The version was rolled back from."))
    lock_pool(locked.base_revision.digest)
    held = wanted_residencies(locked.pk)
    known = state_on_nodes(held)
    if known is not None:
        return with_wait(known, locked)
    failed = _failed_lately(locked)
    if failed is not None:
        return _recovering(held) or failed
    refused = lock_refused(held)
    spots, look = _look(actor, locked, ask, held, refused, node)
    if node is not None and look.ending not in (Ending.PLACED, Ending.ROOM_MADE):
        spots, look = _look(actor, locked, ask, held, refused, None)
    if look.ending is Ending.PLACED:
        give_up(actor, refused)
    answer = _answer(locked, spots, look, ask, held)
    send = None if look.residency is None else take_command(residency=look.residency)
    due.extend([] if send is None else [send])
    return with_wait(answer, locked, spots) if isinstance(answer, Demand) else answer


def with_wait(demand: Demand, version: Version, spots: Sequence[Spot] = ()) -> Demand:
    """The same, and how long a request may wait for it, if there is anything to wait for."""
    if demand.state not in (DemandState.LOADING, DemandState.QUEUED):
        return demand
    policy = spots[0].policy if spots else active_policy(version.base_revision.base_model_id)
    return replace(demand, wait_s=policy.wait_s_of(version.adapter.tenant.name))


def _failed_lately(version: Version) -> Demand | None:
    failure = getattr(version, "load_failure", None)
    pause = timedelta() if failure is None else pause_of(failure)
    if failure is None or pause <= timedelta():
        return None
    return Demand(DemandState.FAILED, failure.message, retry_after_s=math.ceil(pause.total_seconds()))


def _lock_version(version_id: UUID) -> tuple[Version, bool]:
    """The version with all that a command to load it says of it, and whether a rollback has ever left it.

    What a base is made of is large and not needed.
    """
    found = Version.objects.select_related("adapter__tenant", "base_revision__base_model", "signature", "load_failure")
    known = found.defer("base_revision__description").annotate(is_left=left_by_rollback("pk"))
    locked = known.select_for_update(of=("self",), no_key=True)
    version = locked.filter(pk=version_id).first()
    if version is None:
        raise NotFound(_("There is no version with this id."), field="version_id")
    return version, version.is_left


def _look(
    actor: Actor,
    version: Version,
    ask: Ask,
    held: Iterable[Residency],
    refused: Collection[Residency],
    node: str | None,
) -> tuple[list[Spot], Look]:
    spots = [spot for spot in spots_for(version, node=node) if not spot.wants_it]
    if _recovering(held) is not None:
        # One engine that is not well is as good as another.
        spots = [spot for spot in spots if spot.node.engine_healthy]
    if refused:
        given_up = given_up_lately(version)
        spots = [spot for spot in spots if spot.node.pk not in given_up]
    if not spots:
        return spots, Look(ending=Ending.NO_NODE, message=_no_node())
    waits = None if node else _waits_for_its_turn(version, spots, ask)
    return spots, waits or look_for_place(
        actor=actor, version=version, spots=spots, in_flight=ask.in_flight, refused=refused
    )


def _waits_for_its_turn(version: Version, spots: list[Spot], ask: Ask) -> Look | None:
    if ask.is_turn:
        return None
    if queue.has_others(version):
        stall = Stall.TURN if any(spot.may_load for spot in spots) else Stall.BUSY
        return Look(ending=Ending.WAIT, stall=stall, message=_("Others wait as well."))
    tenant = version.adapter.tenant.name
    if queue.pause_of(tenant, version.base_revision.digest, spots[0].policy):
        return Look(ending=Ending.WAIT, message=_("%(tenant)s has had its loads for this minute.") % {"tenant": tenant})
    return None


def _answer(version: Version, spots: list[Spot], look: Look, ask: Ask, held: list[Residency]) -> Demand | RoomMade:
    match look.ending:
        case Ending.ROOM_MADE if look.node is not None and not ask.is_last:
            return RoomMade(look.node)
        case Ending.PLACED if look.residency is not None:
            policy = spots[0].policy
            queue.mark_placed(version, look.residency, policy=policy, wait=ask.wait, tier=look.tier)
            return Demand(DemandState.LOADING, _("It is being loaded."), tier=look.tier)
        case Ending.WAIT | Ending.ROOM_MADE:
            return _wait(version, spots, look, ask)
        case Ending.OVER_QUOTA if _recovering(held) is None and not refused_among(held):
            wait_s = _retry_after(version, spots)
            code, over = Ending.OVER_QUOTA.value, tuple(resource.value for resource in look.over)
            return Demand(DemandState.SHED, look.message, code=code, retry_after_s=wait_s, over=over)
        case _:
            return _no(look, held)


def _wait(version: Version, spots: list[Spot], look: Look, ask: Ask) -> Demand:
    tier = "disk" if any(spot.has_files for spot in spots) else "remote"
    queued = queue.enqueue(version, policy=spots[0].policy, wait=ask.wait, tier=tier)
    if isinstance(queued, Shed):
        wait_s, over = _retry_after(version, spots), (_QUEUE_SHARE,) if queued is Shed.TENANT_SHARE else ()
        return Demand(DemandState.SHED, _refusal(queued, version), code=queued.value, retry_after_s=wait_s, over=over)
    return Demand(DemandState.QUEUED, look.message, tier=queued.tier, position=_position(queued), stall=look.stall)


def _position(request: LoadRequest) -> int:
    ahead = LoadRequest.objects.filter(
        pool=request.pool, state=LoadState.QUEUED.value, enqueued_at__lt=request.enqueued_at
    )
    return ahead.count() + 1


def _refusal(shed: Shed, version: Version) -> str:
    if shed is Shed.QUEUE_FULL:
        return _("Too many loads wait already.")
    return _("%(tenant)s has as many loads waiting as it may.") % {"tenant": version.adapter.tenant.name}


def _retry_after(version: Version, spots: list[Spot]) -> int:
    pool, policy = version.base_revision.digest, spots[0].policy
    at_once = len(spots) * policy.document.loading.concurrent_loads_per_node
    ahead = len(queue.queued_in(pool))
    wait = expected_wait_s(ahead=ahead, at_once=at_once, load_s=USUAL_LOAD_MS / 1000)
    pause = queue.pause_of(version.adapter.tenant.name, pool, policy)
    return max(wait, round(pause.total_seconds()))


def _no(look: Look, held: Iterable[Residency]) -> Demand:
    recovering = _recovering(held)
    if recovering is not None:
        return recovering
    failed = next((residency for residency in held if is_broken(residency)), None)
    if failed is not None:
        return Demand(DemandState.FAILED, failed.message, code=failed.error_code)
    if refused := refused_among(held):
        return _no_room(min(refused, key=next_try))
    if look.ending is Ending.NO_CAPACITY:
        return Demand(DemandState.NO_CAPACITY, look.message)
    return Demand(DemandState.NO_NODE, look.message)


def _no_node() -> str:
    return _("No node that is up serves this version's base model and rank.")


def _recovering(held: Iterable[Residency]) -> Demand | None:
    """How the version stands where it is loaded, or will be, once the engine is well again; None: nowhere."""
    found = (one for one in held if may_answer(one.node) and not one.node.engine_healthy and not is_broken(one))
    return next(map(_pending, found), None)


def _no_room(residency: Residency) -> Demand:
    left = max(1, math.ceil((next_try(residency) - timezone.now()).total_seconds()))
    return Demand(DemandState.NO_CAPACITY, residency.message, code=residency.error_code, retry_after_s=left)


def _pending(residency: Residency) -> Demand:
    tier = "remote" if residency.observed in (Observed.ABSENT, Observed.FETCHING) else "disk"
    return Demand(DemandState.LOADING, residency.message or _("It is being loaded."), tier=tier)


def _touch(residency: Residency) -> None:
    now = timezone.now()
    stale = Q(last_demand_at__isnull=True) | Q(last_demand_at__lt=now - _DEMAND_PRECISION)
    if residency.last_demand_at is None or residency.last_demand_at < now - _DEMAND_PRECISION:
        Residency.objects.filter(stale, pk=residency.pk).update(last_demand_at=now)
