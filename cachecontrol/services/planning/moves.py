"""One move of a plan. The plan was made a moment ago: what doesn't hold any more is left to the next one."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.utils import timezone

from cachecontrol.models import Node, Residency
from cachecontrol.placement.changes import Move, Step
from cachecontrol.policies import active_policy
from cachecontrol.quotas import admits
from cachecontrol.residents import why_kept
from cachecontrol.scoring.choose import Choice
from cachecontrol.scoring.ports import Score
from cachecontrol.selectors import lock_nodes
from cachecontrol.services import wishes
from cachecontrol.services.disks import admission_to_disk
from cachecontrol.services.evictions import REMOTE, Need, Verdict, has_room, record_eviction, words_for
from cachecontrol.services.loads import hot
from cachecontrol.services.loads.failures import is_paused
from cachecontrol.services.loads.placing import need_of
from cachecontrol.services.loads.refusals import given_up_lately
from cachecontrol.services.places import Spot, lock_pool, residents_of, spots_for, used_of
from cachecontrol.services.planning.facts import SCORED_BY, Pool
from cachecontrol.states import Desired, EvictionReason, Tier
from registry.actors import system_actor
from registry.errors import StaleState
from registry.models import Version
from registry.selectors import versions_with_relations
from releases.warmth import cooled_versions

logger = logging.getLogger(__name__)
_REASON: Final = "the plan wants it here"


def make_move(move: Move, *, pool: Pool) -> bool:
    """Make it, if it still can be made; whether it was."""
    try:
        return _STEPS[move.step](move, pool)
    except StaleState as error:
        logger.info("a move of the plan came too late: %s", error)
        return False


@dataclass(frozen=True, slots=True)
class _Guest:
    """A version that may be served, the node as it sees it now, and what it asks of the pool."""

    version: Version
    spot: Spot
    need: Need


@transaction.atomic
def _load(move: Move, pool: Pool) -> bool:
    guest = _lock(move, pool)
    if guest is None or guest.spot.wants_it or not guest.spot.may_load or _is_refused(guest):
        return False
    if is_paused(guest.version):
        return False
    spot, need = guest.spot, guest.need
    residents = residents_of([spot.node], half_life=pool.policy.scoring.half_life).get(spot.node.pk, [])
    admission = admits(tenant=need.tenant, wants=need.wants, quotas=spot.policy.quotas, used=need.used or {})
    if admission.only_itself or admission_to_disk(need, spot).only_itself:
        return False
    if not has_room(spot, residents, need.size_bytes):
        return False
    residency = wishes.want(actor=system_actor("planner"), node=spot.node, version=guest.version, reason=_REASON)
    if move.is_hot:
        hot.heat_newcomer(residency, spot=spot, need=need)
    return True


@transaction.atomic
def _fetch(move: Move, pool: Pool) -> bool:
    guest = _lock(move, pool)
    if guest is None or _is_refused(guest) or admission_to_disk(guest.need, guest.spot).only_itself:
        return False
    wishes.want_on_disk(actor=system_actor("planner"), node=guest.spot.node, version=guest.version, reason=_REASON)
    return True


@transaction.atomic
def _demote(move: Move, pool: Pool) -> bool:
    residency = _lock_residency(move)
    if residency is None or residency.desired != Desired.GPU or _is_in_use(residency, pool):
        return False
    reason = _reason(residency)
    record_eviction(residency=residency, to=Tier.DISK, reason=reason, verdict=_verdict(move, pool))
    wishes.demote(actor=system_actor("planner"), residency=residency, reason=words_for(reason))
    return True


@transaction.atomic
def _drop(move: Move, pool: Pool) -> bool:
    residency = _lock_residency(move)
    if residency is None or residency.desired == Desired.ABSENT or _is_in_use(residency, pool):
        return False
    reason = _reason(residency)
    record_eviction(residency=residency, to=REMOTE, reason=reason, verdict=_verdict(move, pool))
    wishes.release(actor=system_actor("planner"), residency=residency, reason=words_for(reason))
    return True


@transaction.atomic
def _heat(move: Move, pool: Pool) -> bool:
    guest = _lock(move, pool)
    residency = None if guest is None else wishes.lock_residency(node=guest.spot.node, version_id=move.version_id)
    if guest is None or residency is None or residency.desired != Desired.GPU or residency.is_hot:
        return False
    hot.heat_newcomer(residency, spot=guest.spot, need=guest.need)
    return residency.is_hot


@transaction.atomic
def _cool(move: Move, pool: Pool) -> bool:
    residency = _lock_residency(move)
    if residency is None or not residency.is_hot:
        return False
    hot.cool(residency, reason=_reason(residency), verdict=_verdict(move, pool))
    return True


_STEPS: Final[dict[Step, Callable[[Move, Pool], bool]]] = {
    Step.LOAD: _load,
    Step.FETCH: _fetch,
    Step.DEMOTE: _demote,
    Step.DROP: _drop,
    Step.HEAT: _heat,
    Step.COOL: _cool,
}


def _lock(move: Move, pool: Pool) -> _Guest | None:
    """The version, if it may still be wanted, and the node as it is now; both locked, and the pool with them.

    A plan may be older than a rollback, and what was rolled back is wanted by nobody.
    """
    found = versions_with_relations().select_for_update(of=("self",), no_key=True)
    version = found.filter(pk=move.version_id).first()
    if version is None or not wishes.is_servable(version) or cooled_versions(versions=[version.pk]):
        return None
    lock_pool(pool.digest)
    # The plan may be older than the policy: quotas and amounts have to be of one and the same.
    policy = active_policy(version.base_revision.base_model_id)
    # Quotas come before nodes; of the pool nobody else gives places meanwhile.
    used = used_of(version.base_revision.base_model_id, policy)
    lock_nodes(Node.objects.filter(name=move.node))
    spot = next(iter(spots_for(version, node=move.node)), None)
    if spot is None:
        return None
    return _Guest(version, replace(spot, policy=policy), need_of(version, policy, used=used))


def _is_refused(guest: _Guest) -> bool:
    """Whether an operator lets nothing come to the node, or it had no room for this version a moment ago."""
    return guest.spot.node.is_closed or guest.spot.node.pk in given_up_lately(guest.version)


def _lock_residency(move: Move) -> Residency | None:
    nodes = lock_nodes(Node.objects.filter(name=move.node))
    return wishes.lock_residency(node=nodes[0], version_id=move.version_id) if nodes else None


def _is_in_use(residency: Residency, pool: Pool) -> bool:
    """Whether it has to stay for the moment, as with victims; nothing keeps what is on a node that is being emptied."""
    if residency.node.draining or not wishes.is_servable(residency.version):
        return False
    desired = Desired(residency.desired)
    found = residents_of([residency.node], half_life=pool.policy.scoring.half_life, desired=desired)
    resident = next((one for one in found.get(residency.node_id, ()) if one.key == residency.pk), None)
    min_residency = pool.policy.min_residency
    return resident is not None and why_kept(resident, now=timezone.now(), min_residency=min_residency) is not None


def _reason(residency: Residency) -> EvictionReason:
    return EvictionReason.DRAIN if residency.node.draining else EvictionReason.PLAN


def _verdict(move: Move, pool: Pool) -> Verdict | None:
    planned = pool.by_version.get(move.version_id)
    if planned is None:
        return None
    score = Score(value=planned.keep, factors={"rate_per_h": planned.rate_per_h, "weight": planned.weight})
    choice = Choice(victim=move.version_id, score=score, runner_up=None, runner_up_score=None)
    return Verdict(policy=pool.policy, scored_by=SCORED_BY, choice=choice)
