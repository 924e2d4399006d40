"""Who leaves an engine or a disk, and the record of why.

One victim at a time, in a transaction of its own: its audit record is its tenant's, the newcomer's is another's. Then
look again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils import timezone

from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.quotas import Amounts, Usage, allowed_victims
from cachecontrol.residents import MIB, Kept, Resident, why_kept
from cachecontrol.scoring.choose import Choice, choose_victims
from cachecontrol.scoring.facts import Limit
from cachecontrol.scoring.make import make_policy
from cachecontrol.services import wishes
from cachecontrol.services.places import USUAL_LOAD_MS, Spot
from cachecontrol.states import Desired, EvictionReason, Tier
from registry.actors import Actor, system_actor
from registry.permissions import can_see_tenant

REMOTE: Final = "remote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Who wants room in an engine: one version more of ``tenant``, and what it takes.

    ``in_flight`` are versions that are answering now, ``pinned`` those that the policy keeps; ``used`` is None where
    no quota bounds anything.
    """

    tenant: str
    size_bytes: int
    wants: Amounts
    in_flight: Collection[UUID] = ()
    pinned: Collection[UUID] = ()
    used: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A word on a victim under a policy; ``scored_by`` names the scores, which are not the policy's own everywhere."""

    policy: PolicyInForce
    scored_by: str
    choice: Choice


@dataclass(frozen=True, slots=True)
class Victim:
    """Who is to leave; ``verdict`` is None for what is broken and worth nothing."""

    resident: Resident
    verdict: Verdict | None

    @property
    def score(self) -> float:
        """For choosing among nodes; the smaller the better."""
        return float("-inf") if self.verdict is None else self.verdict.choice.score.value


@dataclass(frozen=True, slots=True)
class NoVictim:
    """Nobody may leave; ``is_passing``: somebody may before long."""

    is_passing: bool


def has_room(spot: Spot, residents: Collection[Resident], size_bytes: int) -> bool:
    """Whether one more version of that size fits beside these."""
    return spot.free > 0 and _bytes_short(spot, residents, size_bytes) <= 0


def choose_victim(spot: Spot, residents: Collection[Resident], need: Need, *, now: datetime) -> Victim | NoVictim:
    """Who leaves ``spot`` first so that ``need`` fits: what is broken, then the smallest score that may go."""
    broken = min((resident for resident in residents if resident.is_broken), key=lambda one: one.key, default=None)
    if broken is not None:
        return Victim(broken, None)
    # Who may not leave now is nobody to take from: a tenant below its floor turns to its own then.
    free = _allowed(spot, [resident for resident in residents if _kept(spot, resident, need, now) is None], need)
    choice = _choose(spot, residents, free, need, now)
    if choice is None:
        return NoVictim(_is_passing(spot, residents, need, now))
    chosen = next(resident for resident in free if resident.version_id == choice.victim)
    return Victim(chosen, Verdict(policy=spot.policy, scored_by=spot.policy.eviction_policy, choice=choice))


def evict_victim(*, actor: Actor, node: Node, victim: Victim, asked_by: str, reason: EvictionReason) -> bool:
    """Take the victim out of the engine; its files stay. Its tenant is told neither the newcomer nor who asked.

    The caller has locked the node. Whether it was: it may be on its way out already, or have been used meanwhile.
    """
    residency = wishes.lock_residency(node=node, version_id=victim.resident.version_id)
    if residency is None or residency.desired != Desired.GPU or was_used_since(residency, victim.resident):
        return False
    is_member = can_see_tenant(actor, residency.version.adapter.tenant_id)
    record_eviction(residency=residency, to=Tier.DISK, reason=reason, verdict=victim.verdict, asked_by=asked_by)
    _advance_clock(node, victim.verdict)
    by = actor if is_member else system_actor("placement")
    wishes.demote(actor=by, residency=residency, reason=_REASONS[reason])
    return True


def was_used_since(residency: Residency, known: Resident) -> bool:
    """Whether somebody used or demanded the version since it was looked at."""
    uses = [use for use in (residency.last_used_at, residency.last_demand_at) if use is not None]
    return bool(uses) and (known.used_at is None or max(uses) > known.used_at)


def record_eviction(
    *,
    residency: Residency,
    to: str,
    reason: EvictionReason,
    verdict: Verdict | None = None,
    asked_by: str = "",
) -> None:
    """Write down that a version goes to a lower tier, before its wish is changed."""
    scored = {} if verdict is None else _scored(verdict)
    Eviction.objects.create(
        node=residency.node,
        version=residency.version,
        tier=tier_of(residency),
        to_tier=to,
        reason=reason.value,
        asked_by=asked_by,
        at=timezone.now(),
        **scored,
    )


def tier_of(residency: Residency) -> str:
    """Where it is as far as anybody knows, else where the plan has it."""
    if residency.desired != Desired.GPU:
        return Tier.DISK.value
    return residency.tier or (Tier.GPU if residency.is_hot else Tier.CPU).value


_REASONS: Final[Mapping[EvictionReason, str]] = {
    EvictionReason.ROOM: "to make room",
    EvictionReason.QUOTA: "its tenant is above its quota",
    EvictionReason.TTL: "it was idle for too long",
    EvictionReason.IDLE: "it was idle and the engine is above its high water mark",
    EvictionReason.DRAIN: "the node is being emptied",
    EvictionReason.PRESSURE: "the disk was full",
    EvictionReason.PLAN: "the plan has it elsewhere",
}


def words_for(reason: EvictionReason) -> str:
    """The reason as the audit log says it."""
    return _REASONS[reason]


def _allowed(spot: Spot, residents: Collection[Resident], need: Need) -> list[Resident]:
    if need.used is None:
        return list(residents)
    held = {resident.version_id: resident.holding for resident in residents}
    keys = allowed_victims(tenant=need.tenant, wants=need.wants, quotas=spot.policy.quotas, used=need.used, held=held)
    return [resident for resident in residents if resident.version_id in keys]


def _kept(spot: Spot, resident: Resident, need: Need, now: datetime) -> Kept | None:
    return why_kept(
        resident,
        now=now,
        min_residency=spot.policy.min_residency,
        in_flight=need.in_flight,
        pinned=need.pinned,
    )


def _is_passing(spot: Spot, residents: Collection[Resident], need: Need, now: datetime) -> bool:
    """Whether somebody may leave before long, and whether that will do."""
    kept = [(resident, _kept(spot, resident, need, now)) for resident in _allowed(spot, residents, need)]
    some_day = [resident for resident, why in kept if why is not Kept.PINNED]
    is_enough = _bytes_short(spot, residents, need.size_bytes) <= _all(some_day)
    return is_enough and any(why not in (None, Kept.PINNED) for _resident, why in kept)


def _choose(
    spot: Spot, residents: Collection[Resident], free: Collection[Resident], need: Need, now: datetime
) -> Choice | None:
    policy = make_policy(spot.policy.eviction_policy, spot.policy.scoring)
    wait_ms = spot.loading * USUAL_LOAD_MS
    facts = [resident.facts(weight=spot.policy.weight_of(resident.tenant), queue_wait_ms=wait_ms) for resident in free]
    short = _bytes_short(spot, residents, need.size_bytes)
    if short > _all(free):
        return None
    # Of several that have to go for their bytes one goes now, and the next when it was looked again.
    limit, amount = (Limit.SLOTS, 1.0) if spot.free <= 0 or short <= 0 else (Limit.BYTES, short / MIB)
    return next(iter(choose_victims(policy, facts, now=now, limit=limit, need=amount)), None)


def _bytes_short(spot: Spot, residents: Collection[Resident], size_bytes: int) -> int:
    return 0 if spot.cpu_bytes is None else _all(residents) + size_bytes - spot.cpu_bytes


def _all(residents: Collection[Resident]) -> int:
    return sum(resident.size_bytes for resident in residents)


def _scored(verdict: Verdict) -> dict[str, object]:
    choice = verdict.choice
    return {
        "policy": verdict.scored_by,
        "policy_number": verdict.policy.number,
        "score": choice.score.value,
        "factors": choice.score.factors,
        "runner_up_id": choice.runner_up,
        "runner_up_score": None if choice.runner_up_score is None else choice.runner_up_score.value,
    }


def _advance_clock(node: Node, verdict: Verdict | None) -> None:
    if verdict is None:
        return
    policy = make_policy(verdict.scored_by, verdict.policy.scoring)
    clock = policy.clock_after(node.score_clock, [verdict.choice.score.value])
    if clock != node.score_clock:
        Node.objects.filter(pk=node.pk).update(score_clock=clock)
        node.score_clock = clock
