"""From rows to what the planner decides on."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from cachecontrol.engines import CAPABILITIES
from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.placement.changes import Pair
from cachecontrol.placement.facts import Holding, PlannedNode, PlannedVersion, PlanSettings, TenantLimits
from cachecontrol.placement.schedule import due
from cachecontrol.policies import active_policy
from cachecontrol.policy.cache import EvictionPolicy
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.quotas import Quota, Resource
from cachecontrol.residents import MIB
from cachecontrol.scoring.facts import Facts, Limit
from cachecontrol.scoring.make import make_policy
from cachecontrol.scoring.rates import decayed, rate_per_h
from cachecontrol.selectors import SERVABLE_STATES, retiring_versions
from cachecontrol.services.loads.refusals import given_up_on
from cachecontrol.services.pins import pinned_versions, scheduled_versions
from cachecontrol.services.places import USUAL_LOAD_MS, may_answer, places_on, pool_nodes
from cachecontrol.services.sizes import sizes_of
from cachecontrol.states import Desired, EngineKind, EvictionReason, NodeStatus, Observed
from registry.models import Version
from registry.states import VersionState
from releases.warmth import cooled_versions, kept_warm_versions

# What a plan weighs versions by, whatever the policy chooses victims by.
SCORED_BY: Final = EvictionPolicy.DENSITY.value
# A request within about a quarter of an hour: what is asked for less is not brought into an engine unasked.
_WARM_PER_H: Final = 1.0
_DISK_PER_H: Final = 0.1
# For so long the plan respects what an operator took from a node; a pin, a schedule and a release don't.
_BY_HAND_LASTS: Final = timedelta(hours=1)
_NOWHERE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool with all that a plan of it rests on. ``arriving``: what is wanted in an engine and isn't there yet."""

    digest: str
    policy: PolicyInForce
    nodes: tuple[PlannedNode, ...]
    versions: tuple[PlannedVersion, ...]
    settings: PlanSettings
    held: Holding
    arriving: frozenset[Pair]

    @cached_property
    def by_version(self) -> dict[UUID, PlannedVersion]:
        """What is planned, by version."""
        return {version.version_id: version for version in self.versions}


def read_pool(digest: str) -> Pool | None:
    """The pool as it is now; None if it has no nodes."""
    nodes = list(pool_nodes(digest))
    if not nodes:
        return None
    policy = active_policy(nodes[0])
    residencies = _residencies(nodes)
    return Pool(
        digest=digest,
        policy=policy,
        nodes=tuple(_node(node, policy) for node in nodes),
        versions=tuple(_versions(digest, policy, _copies(residencies), _shunned(nodes))),
        settings=settings_of(policy),
        held=_holding_of(residencies),
        arriving=_arriving(residencies),
    )


def read_again(pool: Pool) -> Pool | None:
    """The pool as it is now, but for how much its versions are asked for, which is most of what there is to read.

    None if that can't be told from what is known: another policy is in force, or something is held that isn't known.
    """
    nodes = list(pool_nodes(pool.digest))
    if not nodes or active_policy(nodes[0]) != pool.policy:
        return None
    residencies, gone = _residencies(nodes), _withdrawn(pool.digest)
    if {residency.version_id for residency in residencies} - gone - pool.by_version.keys():
        return None
    shunned = _shunned(nodes)
    return replace(
        pool,
        nodes=tuple(_node(node, pool.policy) for node in nodes),
        versions=tuple(_kept_from(one, shunned) for one in pool.versions if one.version_id not in gone),
        held=_holding_of(residencies),
        arriving=_arriving(residencies),
    )


def settings_of(policy: PolicyInForce) -> PlanSettings:
    """How the policy has a pool planned."""
    quotas = policy.quotas
    return PlanSettings(
        requests_per_h_per_node=policy.served_per_h,
        max_replicas=policy.document.replicas.max,
        warm_rate_per_h=_WARM_PER_H,
        disk_rate_per_h=_DISK_PER_H,
        limits={tenant: _limits(quota) for tenant, quota in quotas.tenants.items()},
        others=_limits(quotas.default),
    )


class _Held(NamedTuple):
    """A residency as far as a plan needs it: of large pools there are tens of thousands."""

    node: Node
    version_id: UUID
    desired: str
    observed: str
    is_hot: bool


def _residencies(nodes: Iterable[Node]) -> list[_Held]:
    by_key = {node.pk: node for node in nodes}
    found = Residency.objects.filter(node__in=by_key).exclude(desired=Desired.ABSENT.value)
    rows = found.values_list("node_id", "version_id", "desired", "observed", "is_hot")
    return [
        _Held(by_key[key], version_id, desired, observed, is_hot) for key, version_id, desired, observed, is_hot in rows
    ]


def _holding_of(residencies: Iterable[_Held]) -> Holding:
    """What is wanted where."""
    loaded: defaultdict[str, set[UUID]] = defaultdict(set)
    hot: defaultdict[str, set[UUID]] = defaultdict(set)
    disk: defaultdict[str, set[UUID]] = defaultdict(set)
    for residency in residencies:
        place = loaded if residency.desired == Desired.GPU else disk
        place[residency.node.name].add(residency.version_id)
        if residency.is_hot:
            hot[residency.node.name].add(residency.version_id)
    return Holding(loaded=_frozen(loaded), hot=_frozen(hot), disk=_frozen(disk))


def _arriving(residencies: Iterable[_Held]) -> frozenset[Pair]:
    return frozenset(
        (residency.node.name, residency.version_id)
        for residency in residencies
        if residency.desired == Desired.GPU and residency.observed != Observed.LOADED
    )


def _withdrawn(digest: str) -> set[UUID]:
    """What was revoked, or has no files any more."""
    gone = Q(state=VersionState.REVOKED.value) | Q(purged_at__isnull=False)
    return set(Version.objects.filter(gone, base_revision__digest=digest).values_list("pk", flat=True))


def _copies(residencies: Iterable[_Held]) -> Counter[UUID]:
    """What is held, and in how many engines that go on answering with it."""
    copies: Counter[UUID] = Counter()
    for residency in residencies:
        copies[residency.version_id] += residency.desired == Desired.GPU and may_answer(residency.node)
    return copies


def _node(node: Node, policy: PolicyInForce) -> PlannedNode:
    return PlannedNode(
        name=node.name,
        base_digest=node.base_revision.digest,
        max_rank=node.max_rank,
        gpu_slots=node.gpu_slots,
        hot_limit=policy.hot_limit(node.gpu_slots),
        places=policy.places_to_fill(places_on(node, policy)),
        cpu_bytes=policy.cpu_bytes(node.memory_bytes),
        disk_bytes=policy.disk_bytes_to_fill(node.disk_bytes),
        is_up=_is_up(node),
        is_cordoned=node.cordoned or node.tainted or not node.engine_healthy,
        is_draining=node.draining,
        capabilities=CAPABILITIES[EngineKind(node.engine_kind)],
    )


def _is_up(node: Node) -> bool:
    """Whether what it holds counts: an engine may be unwell for as long as a node may be silent."""
    if node.status != NodeStatus.UP or _is_given_up(node):
        return False
    return node.draining or may_answer(node)


def _is_given_up(node: Node) -> bool:
    since = node.engine_sick_since
    return since is not None and since + timedelta(seconds=settings.NODE_TIMEOUT_S) < timezone.now()


def taken_by_hand(nodes: Iterable[Node]) -> Mapping[UUID, frozenset[str]]:
    """From which nodes each version was taken by hand lately, unless it was asked for and brought back since."""
    taken = Eviction.objects.filter(
        node__in=[node.pk for node in nodes],
        reason=EvictionReason.MANUAL.value,
        at__gt=timezone.now() - _BY_HAND_LASTS,
    )
    back = Residency.objects.filter(node=OuterRef("node"), version=OuterRef("version"), desired=Desired.GPU.value)
    names: defaultdict[UUID, set[str]] = defaultdict(set)
    for version_id, name in taken.exclude(Exists(back)).values_list("version_id", "node__name"):
        names[version_id].add(name)
    return {version_id: frozenset(found) for version_id, found in names.items()}


@dataclass(frozen=True, slots=True)
class _Shunned:
    """By version the names of nodes: from which it was taken by hand lately, and which had no room for it just now."""

    taken: Mapping[UUID, frozenset[str]]
    full: Mapping[UUID, frozenset[str]]


def _shunned(nodes: Iterable[Node]) -> _Shunned:
    known = list(nodes)
    return _Shunned(taken=taken_by_hand(known), full=given_up_on(known))


def _versions(
    digest: str, policy: PolicyInForce, copies: Mapping[UUID, int], shunned: _Shunned
) -> list[PlannedVersion]:
    now = timezone.now()
    pinned, kept = pinned_versions(policy.document), kept_warm_versions(now=now)
    scheduled = scheduled_versions(due(policy.document.prewarm.schedule, now=now))
    found = list(_found(digest, copies.keys() | pinned | kept | scheduled))
    keys = [version.pk for version in found]
    cooled = cooled_versions(versions=keys)
    sizes, retiring = sizes_of(keys), retiring_versions(versions=keys)
    facts = [
        _facts(version, policy, sizes[version.pk], is_retiring=version.pk in retiring, now=now) for version in found
    ]
    scores = make_policy(SCORED_BY, policy.scoring).score(facts, now=now, limit=Limit.SLOTS)
    planned = (
        PlannedVersion(
            version_id=version.pk,
            tenant=fact.tenant,
            base_digest=digest,
            rank=version.rank or 0,
            size_bytes=sizes[version.pk],
            # Whoever asked for it was given another version: it isn't asked for any more.
            rate_per_h=0.0 if version.pk in cooled else _planned_rate(version, fact, policy, now),
            keep=score.value,
            weight=fact.weight,
            is_pinned=version.pk in pinned,
            # Where the share of the requests moves from one to the other, copies stay as many as they are.
            min_replicas=max(1, copies[version.pk]) if version.pk in kept else 0,
            is_wanted_on_release=version.pk in scheduled,
        )
        for version, fact, score in zip(found, facts, scores, strict=True)
    )
    return [_kept_from(version, shunned) for version in planned]


def _kept_from(version: PlannedVersion, shunned: _Shunned) -> PlannedVersion:
    """The same, kept from nodes without room for it, and unless more than its rate wants it from where it was taken."""
    is_firm = version.is_pinned or version.min_replicas > 0 or version.is_wanted_on_release
    taken = _NOWHERE if is_firm else shunned.taken.get(version.version_id, _NOWHERE)
    unwanted_on = taken | shunned.full.get(version.version_id, _NOWHERE)
    return version if version.unwanted_on == unwanted_on else replace(version, unwanted_on=unwanted_on)


def _found(digest: str, keys: set[UUID]) -> QuerySet[Version]:
    servable = Version.objects.filter(
        base_revision__digest=digest, state__in=SERVABLE_STATES, purged_at=None, signature__isnull=False
    )
    used = Q(heat__isnull=False) | Q(pk__in=keys)
    return servable.filter(used).select_related("adapter__tenant__heat", "heat").order_by("pk")


def _facts(
    version: Version,
    policy: PolicyInForce,
    size: int,
    *,
    is_retiring: bool,
    now: datetime,
) -> Facts:
    half_life = policy.scoring.half_life
    heat, tenant = getattr(version, "heat", None), version.adapter.tenant
    tenant_heat = getattr(tenant, "heat", None)
    return Facts(
        version_id=version.pk,
        tenant=tenant.name,
        rate_per_h=_rate(heat.rate, heat.as_of, now, half_life) if heat else 0.0,
        tenant_rate_per_h=_rate(tenant_heat.rate, tenant_heat.as_of, now, half_life) if tenant_heat else 0.0,
        hits=heat.hits if heat else 0,
        last_used_at=heat.last_used_at if heat else None,
        size_mib=size / MIB,
        reload_ms=USUAL_LOAD_MS,
        weight=policy.weight_of(tenant.name),
        is_retiring=is_retiring,
        clock=0.0,
    )


def _planned_rate(version: Version, fact: Facts, policy: PolicyInForce, now: datetime) -> float:
    """What is expected where the policy wants that; nothing for what has been idle so long that it is to leave."""
    heat = getattr(version, "heat", None)
    predicted = heat.predicted_per_h if heat and policy.document.prewarm.predicted else 0.0
    ttl, used_at = policy.cpu_ttl, fact.last_used_at
    is_over = ttl is not None and used_at is not None and used_at + ttl <= now
    return predicted if is_over else max(fact.rate_per_h, predicted)


def _rate(count: float, as_of: datetime, now: datetime, half_life: timedelta) -> float:
    return rate_per_h(decayed(count, as_of=as_of, now=now, half_life=half_life), half_life=half_life)


def _limits(quota: Quota) -> TenantLimits:
    hot, cpu, disk = (quota.of(resource) for resource in Resource)
    return TenantLimits(
        hot=hot.ceiling,
        cpu_bytes=cpu.ceiling,
        disk_bytes=disk.ceiling,
        hot_floor=hot.floor,
        cpu_floor_bytes=cpu.floor,
        disk_floor_bytes=disk.floor,
    )


def _frozen(sets: dict[str, set[UUID]]) -> dict[str, frozenset[UUID]]:
    return {name: frozenset(found) for name, found in sets.items()}
