"""Reads. Each takes the actor and sees only what the actor may see, but for those that the system itself needs."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import F, Prefetch, Q, QuerySet
from django.utils.translation import gettext as _

from cachecontrol.models import Node, Residency, TenantRules
from cachecontrol.states import WORTH_ANOTHER_TRY, Desired, NodeStatus, Observed
from registry.actors import Actor
from registry.errors import NotFound
from registry.models import BaseModel, Tenant, Version
from registry.permissions import Action, require_on_platform, sees_all_tenants
from registry.ports import Holder
from registry.states import VersionState
from releases.models import Alias, AliasRevision
from releases.selectors import split_targets

SERVABLE_STATES = (VersionState.APPROVED.value, VersionState.YANKED.value)
_GONE = Q(desired=Desired.ABSENT.value, observed=Observed.ABSENT.value, acted_generation=F("generation"))

_WRONG = Q(status=NodeStatus.LOST.value) | Q(stuck=True) | Q(poisoned=True) | Q(engine_sick_since__isnull=False)


def nodes_with_relations() -> QuerySet[Node]:
    """Nodes with all that naming and deciding needs; what a base is made of is large and is read by who needs it."""
    found = Node.objects.select_related("base_revision__base_model", "token")
    return found.defer("base_revision__description")


def lock_nodes(found: QuerySet[Node]) -> list[Node]:
    """The nodes found, locked until the transaction ends, in one order for everybody.

    They are locked alone and then read with their relations: a query that waits for a lock while joined to the token
    finds nothing any more when the token was rotated meanwhile.
    """
    keys = list(found.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    return list(nodes_with_relations().filter(pk__in=keys).order_by("pk"))


def lock_node(node: Node) -> Node:
    return lock_nodes(Node.objects.filter(pk=node.pk))[0]


def residencies_with_relations() -> QuerySet[Residency]:
    """Residencies with all that naming, showing and deciding needs; what a base is made of is large and not needed."""
    found = Residency.objects.select_related(
        "node__base_revision__base_model",
        "version__adapter__tenant",
        "version__base_revision__base_model",
    )
    return found.defer("node__base_revision__description", "version__base_revision__description")


def list_nodes(*, actor: Actor) -> QuerySet[Node]:
    """Each with ``residencies`` as far as they belong to tenants that the actor may see, but for what is gone."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    held = residencies_with_relations().exclude(_GONE).order_by("pk")
    if not sees_all_tenants(actor):
        held = held.filter(version__adapter__tenant__in=list(actor.roles))
    return nodes_with_relations().prefetch_related(Prefetch("residencies", queryset=held))


def list_alarms(*, actor: Actor) -> QuerySet[Node]:
    """Nodes that need somebody: lost, stuck, not to be trusted, or with an engine that isn't well."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    return nodes_with_relations().filter(_WRONG).order_by("name")


def get_node(*, actor: Actor, name: str, action: Action = Action.VIEW_PLATFORM) -> Node:
    """One of ``list_nodes``, if ``actor`` may do ``action``. Raises ``NotFound`` or ``PermissionDenied``."""
    require_on_platform(actor, action)
    return _only(list_nodes(actor=actor), name=name)


def find_node(*, name: str) -> Node:
    """The node, for callers that have checked the permission by the version they speak of."""
    return _only(nodes_with_relations(), name=name)


def get_reporting_node(*, actor: Actor) -> Node:
    """The node whose token was used."""
    require_on_platform(actor, Action.REPORT_NODE)
    node = nodes_with_relations().filter(token__prefix=actor.token_prefix).first()
    if node is None:
        raise NotFound(_("This token belongs to no node."))
    return node


def list_unsettled_residencies() -> QuerySet[Residency]:
    """Where there may be something to do."""
    withdrawn = ~Q(version__state__in=SERVABLE_STATES)
    misplaced = ~Q(version__base_revision__digest=F("node__base_revision__digest")) | Q(
        version__rank__gt=F("node__max_rank")
    )
    gave_up = Q(observed=Observed.FAILED.value) & ~Q(error_class__in=[error.value for error in WORTH_ANOTHER_TRY])
    there = Q(desired=Desired.GPU.value, observed=Observed.LOADED.value) | Q(
        desired=Desired.DISK.value, observed=Observed.ON_DISK.value
    )
    at_rest = Q(acted_generation=F("generation")) & (there | gave_up)
    wanted = ~Q(desired=Desired.ABSENT.value) & (withdrawn | misplaced | ~at_rest)
    unwanted = Q(desired=Desired.ABSENT.value) & (~_GONE | Q(version__state=VersionState.REVOKED.value))
    return Residency.objects.filter(wanted | unwanted).order_by("pk")


def alias_targets(*, versions: Iterable[UUID]) -> frozenset[UUID]:
    """Which of the versions (by primary key) an alias points to, or sends some of its requests to."""
    known = list(versions)
    pointed = frozenset(Alias.objects.filter(version_id__in=known).values_list("version_id", flat=True))
    return pointed | split_targets(versions=known)


def retiring_versions(*, versions: Iterable[UUID]) -> frozenset[UUID]:
    """Those of the versions that aliases have moved away from and none points to, and those that were yanked."""
    known = list(versions)
    left = set(AliasRevision.objects.filter(previous_version__in=known).values_list("previous_version", flat=True))
    yanked = Version.objects.filter(pk__in=known, state=VersionState.YANKED.value).values_list("pk", flat=True)
    return (frozenset(left) | frozenset(yanked)) - alias_targets(versions=known)


def holders_of(*, version_id: UUID) -> tuple[Holder, ...]:
    """The nodes that reported the version as anything but absent and did not report it gone since, by name."""
    held = Residency.objects.filter(version_id=version_id).exclude(observed=Observed.ABSENT.value)
    rows = held.order_by("node__name").values_list("node__name", "observed", "desired")
    return tuple(Holder(node=node, observed=observed, desired=desired) for node, observed, desired in rows)


def placed_versions(*, version_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Those of the versions that a node has, as far as it said, or was told to get."""
    nowhere = Q(desired=Desired.ABSENT.value, observed=Observed.ABSENT.value)
    placed = Residency.objects.filter(version_id__in=list(version_ids)).exclude(nowhere)
    return frozenset(placed.values_list("version_id", flat=True))


def list_pool_models(*, actor: Actor) -> QuerySet[BaseModel]:
    """The base models that have nodes or a cache policy, by name."""
    require_on_platform(actor, Action.VIEW_CACHE_POLICY)
    is_used = Q(revisions__nodes__isnull=False) | Q(cache_policies__isnull=False)
    return BaseModel.objects.filter(is_used).distinct().order_by("name")


def serving_rules_of(tenant: Tenant) -> TenantRules:
    """The tenant's rules, or the default ones, which are in no table."""
    return TenantRules.objects.filter(tenant=tenant).first() or TenantRules(tenant=tenant)


def _only(nodes: QuerySet[Node], *, name: str) -> Node:
    node = nodes.filter(name=name).first()
    if node is None:
        raise NotFound(_("There is no node named %(name)s.") % {"name": name}, field="node")
    return node
