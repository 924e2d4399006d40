"""Whose files a disk holds: what floors guarantee there, and what a tenant at its ceiling gives up for more."""

from collections.abc import Collection, Iterable
from typing import Final
from uuid import UUID

from django.db.models import Count, F
from django.utils import timezone

from cachecontrol.models import Node, Residency
from cachecontrol.policies import quota_usage
from cachecontrol.policy.cache import EvictionPolicy
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.quotas import Admission, Resource, admits, floors_of, kept_by_floor
from cachecontrol.residents import Resident, why_kept
from cachecontrol.scoring.choose import worth_least_first
from cachecontrol.scoring.facts import Limit
from cachecontrol.scoring.make import make_policy
from cachecontrol.selectors import lock_node
from cachecontrol.services import wishes
from cachecontrol.services.evictions import REMOTE, Need, record_eviction, was_used_since, words_for
from cachecontrol.services.places import Spot, residents_of
from cachecontrol.services.sizes import sizes_of
from cachecontrol.states import Desired, EvictionReason
from registry.actors import system_actor

_REASON: Final = EvictionReason.QUOTA
# From this share of its budget on a disk may have to drop files before the next report.
_NEARLY_FULL: Final = 0.5
_EXPENDABLE: Final = 64


def admission_to_disk(need: Need, spot: Spot) -> Admission:
    """Whether the tenant may have the version's files on that node's disk as well."""
    if spot.keeps_files:
        return Admission(is_possible=True, only_itself=False)
    wants = {Resource.DISK_BYTES: need.size_bytes}
    return admits(tenant=need.tenant, wants=wants, quotas=spot.policy.quotas, used=need.used or {})


def droppable_for(need: Need, spots: Collection[Spot]) -> Resident | None:
    """Whose files go first so that the tenant may bring others to a disk; None: not even all of them would do.

    Its own alone: files without a place in an engine before those with one, and the longest unused first.
    """
    policy = next(iter(spots)).policy
    ceiling = policy.quotas.of(need.tenant).of(Resource.DISK_BYTES).ceiling
    has = (need.used or {}).get(need.tenant, {}).get(Resource.DISK_BYTES, 0)
    found = [one for desired in (Desired.DISK, Desired.GPU) for one in _free(need, spots, policy, desired)]
    if ceiling is None or has + need.size_bytes - sum(one.size_bytes for one in found) > ceiling:
        return None
    return next(iter(found), None)


def drop_files(resident: Resident, spots: Iterable[Spot], *, asked_by: str) -> None:
    """Want the files no more; whoever uses them meanwhile keeps them, and the next look finds another."""
    node = lock_node(next(spot.node for spot in spots if spot.node.pk == resident.node_id))
    residency = wishes.lock_residency(node=node, version_id=resident.version_id)
    if residency is None or residency.desired == Desired.ABSENT or was_used_since(residency, resident):
        return
    record_eviction(residency=residency, to=REMOTE, reason=_REASON, asked_by=asked_by)
    wishes.release(actor=system_actor("placement"), residency=residency, reason=words_for(_REASON))


def guaranteed_on(node: Node, policy: PolicyInForce) -> dict[UUID, str]:
    """The files on the node's disk, out of its engine, that nobody else may push out: engine names by version id.

    Of what a tenant has beyond its floor each of its nodes gives up an equal part at most, since none knows of another.
    """
    floors = floors_of(policy.quotas, Resource.DISK_BYTES)
    here = _on_disk(node, floors) if floors else {}
    if not here:
        return {}
    base_model_id = node.base_revision.base_model_id
    used, shares = quota_usage(base_model_id=base_model_id, tenants=here), _shares(base_model_id, here)
    sizes = sizes_of(version_id for names in here.values() for version_id in names)
    guaranteed = {}
    for tenant, names in here.items():
        lent = used.get(tenant, {}).get(Resource.DISK_BYTES, 0) - floors[tenant]
        held = ((key, sizes[key]) for key in names)
        kept = kept_by_floor(held, lent=max(0, lent) // max(1, shares.get(tenant, 1)))
        guaranteed.update({key: names[key] for key in kept})
    return guaranteed


def expendable_on(node: Node, policy: PolicyInForce) -> list[str]:
    """What the node's disk does without first when files have to go at once: engine names in that order.

    Of those longest unused the least worth keeping; none while there is room enough, since it is asked for with every
    report that brings news.
    """
    if (node.disk_used_bytes or 0) < _NEARLY_FULL * policy.disk_bytes(node.disk_bytes):
        return []
    unused = Residency.objects.filter(node=node, desired=Desired.DISK.value).order_by(
        F("last_used_at").asc(nulls_first=True), "pk"
    )[:_EXPENDABLE]
    names = dict(unused.values_list("version_id", "version__engine_name"))
    keys = list(unused.values_list("pk", flat=True))
    held = residents_of([node], half_life=policy.scoring.half_life, desired=Desired.DISK, keys=keys)
    facts = [one.facts(weight=policy.weight_of(one.tenant)) for one in held.get(node.pk, [])]
    scoring = make_policy(EvictionPolicy.DENSITY.value, policy.scoring)
    order = worth_least_first(scoring, facts, now=timezone.now(), limit=Limit.BYTES)
    return [names[version_id] for version_id in order if version_id in names]


def _on_disk(node: Node, tenants: Iterable[str]) -> dict[str, dict[UUID, str]]:
    """By tenant, its files on the node's disk and out of its engine, the longest unused first: names by version id."""
    found: dict[str, dict[UUID, str]] = {}
    own = Residency.objects.filter(
        node=node, desired=Desired.DISK.value, version__adapter__tenant__name__in=list(tenants)
    )
    rows = own.order_by(F("last_used_at").asc(nulls_first=True), "pk")
    for tenant, version_id, name in rows.values_list(
        "version__adapter__tenant__name", "version_id", "version__engine_name"
    ):
        found.setdefault(tenant, {})[version_id] = name
    return found


def _shares(base_model_id: int, tenants: Iterable[str]) -> dict[str, int]:
    """On how many nodes of the base model each tenant has files that are out of an engine."""
    held = Residency.objects.filter(
        node__base_revision__base_model=base_model_id,
        desired=Desired.DISK.value,
        version__adapter__tenant__name__in=list(tenants),
    )
    counted = held.order_by().values_list("version__adapter__tenant__name")
    return dict(counted.annotate(nodes=Count("node", distinct=True)))


def _free(need: Need, spots: Collection[Spot], policy: PolicyInForce, desired: Desired) -> list[Resident]:
    nodes = [spot.node for spot in spots]
    held = residents_of(nodes, half_life=policy.scoring.half_life, desired=desired)
    own = [one for residents in held.values() for one in residents if one.tenant == need.tenant]
    free = [one for one in own if _may_go(one, need, policy)]
    return sorted(free, key=lambda one: (one.used_at is not None, one.used_at, one.key))


def _may_go(resident: Resident, need: Need, policy: PolicyInForce) -> bool:
    why = why_kept(
        resident,
        now=timezone.now(),
        min_residency=policy.min_residency,
        in_flight=need.in_flight,
        pinned=need.pinned,
    )
    return why is None
