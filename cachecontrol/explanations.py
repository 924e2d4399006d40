"""Reads that answer "why is it where it is": evictions with their scores, and how one version stands."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from cachecontrol.models import Eviction, LoadRequest, Residency, VersionHeat
from cachecontrol.models.loads import OPEN
from cachecontrol.policies import active_policy
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.scoring.rates import decayed, rate_per_h
from cachecontrol.selectors import residencies_with_relations
from registry.actors import Actor
from registry.models import Version
from registry.permissions import Action, require_on_platform, sees_all_tenants

_LAST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a version stands, under the policy in force.

    ``rate_per_h`` is its decayed request rate, ``load`` its open wish to be loaded.
    """

    version: Version
    policy: PolicyInForce
    rate_per_h: float
    heat: VersionHeat | None
    load: LoadRequest | None
    residencies: tuple[Residency, ...]
    evictions: tuple[Eviction, ...]


def list_evictions(*, actor: Actor) -> QuerySet[Eviction]:
    """Every eviction of versions of tenants that the actor may see."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    found = evictions_with_relations()
    if sees_all_tenants(actor):
        return found
    return found.filter(version__adapter__tenant__in=list(actor.roles))


def explain(*, version: Version) -> Explanation:
    """How the version stands on every node, and why it last left some. The caller has checked the permission."""
    heat = VersionHeat.objects.filter(version=version).first()
    policy = active_policy(version.base_revision.base_model)
    residencies = residencies_with_relations().filter(version=version).order_by("node__name")
    return Explanation(
        version=version,
        policy=policy,
        rate_per_h=_rate(policy, heat),
        heat=heat,
        load=LoadRequest.objects.filter(version=version, state__in=OPEN).select_related("node").first(),
        residencies=tuple(residencies),
        evictions=tuple(evictions_with_relations().filter(version=version).order_by("-at", "-pk")[:_LAST]),
    )


def evictions_with_relations() -> QuerySet[Eviction]:
    return Eviction.objects.select_related("node", "version__adapter__tenant", "runner_up__adapter__tenant")


def _rate(policy: PolicyInForce, heat: VersionHeat | None) -> float:
    if heat is None:
        return 0.0
    half_life = policy.scoring.half_life
    count = decayed(heat.rate, as_of=heat.as_of, now=timezone.now(), half_life=half_life)
    return rate_per_h(count, half_life=half_life)
