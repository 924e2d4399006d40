"""Reading cache policies: which is in force for a base model, what there is to decide on, and who holds how much."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.models import CachePolicy, LoadRequest, Node, Residency
from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.effective import PolicyInForce, built_in
from cachecontrol.quotas import Quota, Resource
from cachecontrol.states import Desired, LoadState, PolicyState
from registry.actors import Actor
from registry.errors import NotFound
from registry.models import BaseModel, BaseModelRevision, Tenant
from registry.permissions import Action, require_on_platform

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What a tenant holds of a base model's nodes, and how much it may.

    Attributes:
        used: slots and bytes that are given to it.
        loads: how many of its loads began within the last minute.
        queued: how many of its loads wait.

    """

    tenant: str
    policy: PolicyInForce
    used: dict[Resource, int]
    loads: int
    queued: int

    @property
    def quota(self) -> Quota:
        return self.policy.quotas.of(self.tenant)


def active_policy(of: int | Node | BaseModel) -> PolicyInForce:
    """What is in force for a base model (or its primary key) or a node's: the approved policy or the defaults."""
    if isinstance(of, Node):
        of = of.base_revision.base_model_id
    base_model_id = of.pk if isinstance(of, BaseModel) else of
    key = _active().filter(base_model_id=base_model_id).values_list("pk", flat=True).first()
    if key is not None:
        return policy_by_key(key)
    if isinstance(of, BaseModel):
        return built_in(of.name)
    return built_in(BaseModel.objects.values_list("name", flat=True).get(pk=base_model_id))


def active_key(base_model: str) -> Subquery:
    """The primary key of the policy in force, to be read with rows that have the base model at this path."""
    return Subquery(_active().filter(base_model=OuterRef(base_model)).values("pk")[:1])


@lru_cache(maxsize=256)
def policy_by_key(key: int) -> PolicyInForce:
    """What a policy says; read once per process, since that never changes (the database sees to it)."""
    return in_force(CachePolicy.objects.get(pk=key))


def active_policies() -> dict[int, PolicyInForce]:
    """What is in force for every base model that has a node, by the base model's primary key."""
    models = BaseModel.objects.filter(revisions__nodes__isnull=False).distinct()
    policies = {policy.base_model_id: in_force(policy) for policy in _active().filter(base_model__in=models)}
    return {pk: policies.get(pk) or built_in(name) for pk, name in models.values_list("pk", "name")}


def in_force(policy: CachePolicy) -> PolicyInForce:
    """The policy as those who decide read it."""
    return PolicyInForce(number=policy.number, document=document_of(policy))


def document_of(policy: CachePolicy) -> PolicyDocument:
    """What the policy says, from the JSON that it was kept as; it was checked when it was proposed."""
    return PolicyDocument.model_validate(policy.document, strict=False)


def get_base_model(*, actor: Actor, name: str, action: Action = Action.VIEW_CACHE_POLICY) -> BaseModel:
    """The base model, if ``actor`` may do ``action``. Raises ``NotFound`` or ``PermissionDenied``."""
    require_on_platform(actor, action)
    found = BaseModel.objects.filter(name=name).first()
    if found is None:
        raise NotFound(_("There is no base model named %(name)s.") % {"name": name}, field="base_model")
    return found


def list_cache_policies(
    *, actor: Actor, base_model: str, action: Action = Action.VIEW_CACHE_POLICY
) -> QuerySet[CachePolicy]:
    """Every policy that was ever proposed for the base model."""
    found = get_base_model(actor=actor, name=base_model, action=action)
    return policies_with_relations().filter(base_model=found)


def get_cache_policy(
    *, actor: Actor, base_model: str, number: int, action: Action = Action.VIEW_CACHE_POLICY
) -> CachePolicy:
    """One of ``list_cache_policies``, if ``actor`` may do ``action``."""
    found = list_cache_policies(actor=actor, base_model=base_model, action=action).filter(number=number).first()
    if found is None:
        raise NotFound(
            _("%(base)s has no cache policy %(number)d.") % {"base": base_model, "number": number}, field="number"
        )
    return found


def policies_with_relations() -> QuerySet[CachePolicy]:
    return CachePolicy.objects.select_related("base_model", "proposed_by", "decided_by")


def quota_usage(*, base_model_id: int, tenants: Iterable[str] | None = None) -> dict[str, dict[Resource, int]]:
    """What tenants hold of all nodes of a base model, as ``quotas`` takes it; of these ``tenants`` alone if named.

    Slots are those of versions that the plan counts as hot. An engine holds the bytes of whatever is wanted in it, hot
    or not; a disk those of whatever is wanted on the node.
    """
    return _used_by_model([base_model_id], tenants=tenants).get(base_model_id, {})


def _used_by_model(
    base_models: list[int], *, tenants: Iterable[str] | None
) -> dict[int, dict[str, dict[Resource, int]]]:
    """``quota_usage`` of several base models."""
    held = Residency.objects.filter(node__base_revision__base_model__in=base_models)
    held = held.exclude(desired=Desired.ABSENT.value)
    if tenants is not None:
        held = held.filter(version__adapter__tenant__name__in=list(tenants))
    in_engine, size = Q(desired=Desired.GPU.value), "version__files__artifact__size"
    rows = held.values_list("node__base_revision__base_model", "version__adapter__tenant__name").annotate(
        slots=Count("pk", filter=in_engine & Q(is_hot=True), distinct=True),
        cpu=Sum(size, filter=in_engine, default=0),
        disk=Sum(size, default=0),
    )
    found: dict[int, dict[str, dict[Resource, int]]] = {}
    for model, tenant, slots, cpu, disk in rows:
        amounts = {Resource.GPU_SLOTS: slots, Resource.CPU_BYTES: int(cpu), Resource.DISK_BYTES: int(disk)}
        found.setdefault(model, {})[tenant] = amounts
    return found


def usage_of_everybody(*, actor: Actor, base_model: str) -> tuple[TenantUsage, ...]:
    """The quotas of all tenants that hold something of the base model's nodes, or are named in its policy."""
    found = get_base_model(actor=actor, name=base_model)
    policy, used = active_policy(found.pk), quota_usage(base_model_id=found.pk)
    named = Tenant.objects.filter(name__in={*policy.document.quotas.tenants, *policy.document.tenants, *used})
    return tuple(_usages(found, policy, sorted(named.values_list("name", flat=True)), used))


def usage_of_tenant(*, tenant: Tenant) -> tuple[TenantUsage, ...]:
    """The tenant's quota of each base model that it has adapters of and that has nodes, by the base model's name."""
    models = BaseModel.objects.filter(adapters__tenant=tenant, revisions__nodes__isnull=False).distinct()
    found = list(models.order_by("name"))
    keys = [model.pk for model in found]
    policies = {policy.base_model_id: in_force(policy) for policy in _active().filter(base_model__in=keys)}
    used = _used_by_model(keys, tenants=[tenant.name])
    loads = _loads_by_model(keys, [tenant.name], since=timezone.now() - _MINUTE)
    return tuple(
        _usage(
            tenant.name,
            policies.get(model.pk) or built_in(model.name),
            used.get(model.pk, {}),
            loads.get(model.pk, {}),
        )
        for model in found
    )


def _usages(
    model: BaseModel, policy: PolicyInForce, tenants: list[str], used: dict[str, dict[Resource, int]]
) -> Iterable[TenantUsage]:
    loads = _loads_by_model([model.pk], tenants, since=timezone.now() - _MINUTE).get(model.pk, {})
    for tenant in tenants:
        yield _usage(tenant, policy, used, loads)


def _usage(
    tenant: str,
    policy: PolicyInForce,
    used: dict[str, dict[Resource, int]],
    loads: dict[str, tuple[int, int]],
) -> TenantUsage:
    begun, queued = loads.get(tenant, (0, 0))
    return TenantUsage(tenant, policy, used.get(tenant) or dict.fromkeys(Resource, 0), loads=begun, queued=queued)


def _loads_by_model(
    base_models: list[int], tenants: list[str], *, since: datetime
) -> dict[int, dict[str, tuple[int, int]]]:
    """By base model and tenant, how many of its loads began since then, and how many wait."""
    pools = dict(BaseModelRevision.objects.filter(base_model__in=base_models).values_list("digest", "base_model_id"))
    rows = LoadRequest.objects.filter(pool__in=list(pools), tenant__name__in=tenants).values_list(
        "pool", "tenant__name"
    )
    counted = rows.annotate(
        begun=Count("pk", filter=Q(placed_at__gt=since)), queued=Count("pk", filter=Q(state=LoadState.QUEUED.value))
    )
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for pool, tenant, begun, queued in counted:
        of_model = found.setdefault(pools[pool], {})
        before = of_model.get(tenant, (0, 0))
        of_model[tenant] = (before[0] + begun, before[1] + queued)
    return found


def _active() -> QuerySet[CachePolicy]:
    return CachePolicy.objects.filter(state=PolicyState.ACTIVE.value)
