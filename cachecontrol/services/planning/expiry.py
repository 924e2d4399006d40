"""What has been idle for too long, or is above a water mark, goes one tier down; the least worth keeping first."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from cachecontrol.models import Node
from cachecontrol.policies import active_policy
from cachecontrol.policy.cache import EvictionPolicy
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.residents import MIB, Resident, why_kept
from cachecontrol.scoring.choose import Choice, choose_victims
from cachecontrol.scoring.facts import Limit
from cachecontrol.scoring.make import make_policy
from cachecontrol.selectors import lock_node, nodes_with_relations
from cachecontrol.services import wishes
from cachecontrol.services.disks import guaranteed_on
from cachecontrol.services.evictions import REMOTE, Verdict, record_eviction, was_used_since, words_for
from cachecontrol.services.pins import staying_versions
from cachecontrol.services.places import places_on, residents_of
from cachecontrol.states import Desired, EvictionReason, NodeStatus, Tier
from registry.actors import system_actor
from registry.errors import StaleState

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Leaving:
    resident: Resident
    reason: EvictionReason
    choice: Choice | None = None
    scored_by: str = ""


@dataclass(frozen=True, slots=True)
class _Pool:
    """What is on the nodes of one base model, read once for all of them: residents by node, and who may not leave."""

    in_engine: Mapping[int, list[Resident]]
    on_disk: Mapping[int, list[Resident]]
    pinned: Collection[UUID]


def expire_residents() -> int:
    """Look through every node that is up; how many versions went one tier down. One node's trouble stops no other."""
    by_model: defaultdict[int, list[Node]] = defaultdict(list)
    for node in nodes_with_relations().filter(status=NodeStatus.UP.value).order_by("pk"):
        by_model[node.base_revision.base_model_id].append(node)
    return sum(_expire_all(nodes) for nodes in by_model.values())


def _expire_all(nodes: list[Node]) -> int:
    """Of the nodes of one base model, which have one policy."""
    try:
        policy = active_policy(nodes[0])
        pool = _read(nodes, policy)
    except Exception:
        logger.exception("the nodes of %s are looked through again by the next pass", nodes[0].base_revision)
        return 0
    done = 0
    for node in nodes:
        try:
            done += _expire(node, policy, pool)
        except Exception:
            logger.exception("node %s is looked through again by the next pass", node)
    return done


def _read(nodes: list[Node], policy: PolicyInForce) -> _Pool:
    half_life = policy.scoring.half_life
    return _Pool(
        in_engine=residents_of(nodes, half_life=half_life),
        on_disk=residents_of(nodes, half_life=half_life, desired=Desired.DISK),
        pinned=staying_versions(policy.document),
    )


def _expire(node: Node, policy: PolicyInForce, pool: _Pool) -> int:
    now, pinned = timezone.now(), pool.pinned
    in_engine, on_disk = pool.in_engine.get(node.pk, []), pool.on_disk.get(node.pk, [])
    leaving = {Desired.GPU: _from_engine(node, policy, in_engine, pinned, now)}
    leaving[Desired.DISK] = _from_disk(node, policy, in_engine, on_disk, pinned, now)
    return sum(_step_down(node, policy, one, desired=desired) for desired, found in leaving.items() for one in found)


def _from_engine(
    node: Node, policy: PolicyInForce, residents: Collection[Resident], pinned: Collection[UUID], now: datetime
) -> list[_Leaving]:
    idle = _idle(residents, policy, pinned, ttl=policy.cpu_ttl, now=now)
    left = len(residents) - len(idle)
    tier, places = policy.document.adapter_cache.cpu_warm, places_on(node, policy)
    need = left - (tier.low_water or 1) * places if tier.high_water and left > tier.high_water * places else 0
    free = [one for one in residents if one not in idle and _may_go(one, policy, pinned, now)]
    # Where all that may go isn't enough, all of it goes; so on disks.
    return _over(idle, EvictionReason.TTL) + _worst(
        free, policy, need=min(need, len(free)), limit=Limit.SLOTS, reason=EvictionReason.IDLE, now=now
    )


def _from_disk(
    node: Node,
    policy: PolicyInForce,
    in_engine: Collection[Resident],
    on_disk: Collection[Resident],
    pinned: Collection[UUID],
    now: datetime,
) -> list[_Leaving]:
    idle = _idle(on_disk, policy, pinned, ttl=policy.disk_ttl, now=now)
    kept = [one for one in on_disk if one not in idle]
    budget, tier = policy.disk_bytes(node.disk_bytes), policy.document.adapter_cache.disk_cache
    used = sum(one.size_bytes for one in (*in_engine, *kept))
    over = used > (tier.high_water or 1) * budget
    need = (used - (tier.low_water or 1) * budget) / MIB if over else 0
    guaranteed = guaranteed_on(node, policy) if over else {}
    free = [one for one in kept if one.version_id not in guaranteed and _may_go(one, policy, pinned, now)]
    need = min(need, sum(one.size_bytes for one in free) / MIB)
    return _over(idle, EvictionReason.TTL) + _worst(
        free, policy, need=need, limit=Limit.BYTES, reason=EvictionReason.PRESSURE, now=now
    )


def _idle(
    residents: Iterable[Resident],
    policy: PolicyInForce,
    pinned: Collection[UUID],
    *,
    ttl: timedelta | None,
    now: datetime,
) -> list[Resident]:
    if ttl is None:
        return []
    return [
        one
        for one in residents
        if one.last_used_at is not None and one.last_used_at + ttl <= now and _may_go(one, policy, pinned, now)
    ]


def _may_go(resident: Resident, policy: PolicyInForce, pinned: Collection[UUID], now: datetime) -> bool:
    if resident.is_broken:
        return False
    return why_kept(resident, now=now, min_residency=policy.min_residency, pinned=pinned) is None


def _worst(
    free: list[Resident], policy: PolicyInForce, *, need: float, limit: Limit, reason: EvictionReason, now: datetime
) -> list[_Leaving]:
    if need <= 0:
        return []
    known = {resident.version_id: resident for resident in free}
    name = policy.eviction_policy if limit is Limit.SLOTS else EvictionPolicy.DENSITY.value
    scoring = make_policy(name, policy.scoring)
    facts = [resident.facts(weight=policy.weight_of(resident.tenant)) for resident in free]
    choices = choose_victims(scoring, facts, now=now, limit=limit, need=need)
    return [_Leaving(known[choice.victim], reason, choice, name) for choice in choices]


def _over(residents: Iterable[Resident], reason: EvictionReason) -> list[_Leaving]:
    return [_Leaving(resident, reason) for resident in residents]


@transaction.atomic
def _step_down(node: Node, policy: PolicyInForce, leaving: _Leaving, *, desired: Desired) -> bool:
    residency = wishes.lock_residency(node=lock_node(node), version_id=leaving.resident.version_id)
    if residency is None or residency.desired != desired or was_used_since(residency, leaving.resident):
        return False
    choice = leaving.choice
    verdict = None if choice is None else Verdict(policy=policy, scored_by=leaving.scored_by, choice=choice)
    to = Tier.DISK.value if desired is Desired.GPU else REMOTE
    record_eviction(residency=residency, to=to, reason=leaving.reason, verdict=verdict)
    change = wishes.demote if desired is Desired.GPU else wishes.release
    try:
        change(actor=system_actor("cache"), residency=residency, reason=words_for(leaving.reason))
    except StaleState:
        transaction.set_rollback(True)
        return False
    return True
