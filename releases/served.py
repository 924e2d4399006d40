"""What an alias stood for at a time, and by which names it is called: reads of its history and of its grants."""

from datetime import datetime

from django.db.models import Prefetch, Q, QuerySet

from registry.actors import Actor
from registry.models import Tenant
from registry.permissions import Action, require_on_platform
from registry.selectors import get_tenant
from releases.models import Alias, AliasGrant, AliasInterval, AliasRevision
from releases.selectors import get_alias, revisions_of


def list_alias_times(*, actor: Actor, tenant: str, name: str, at: datetime | None = None) -> QuerySet[AliasRevision]:
    """The alias's revisions, each with its ``intervals``, the newest first.

    With ``at`` what it stood for at that time alone: one revision with one interval, or none if it was made later. A
    version that was revoked by then (``state_changed_at``) answered nothing all the same. Gateways hear of a change
    some milliseconds after its interval has begun.
    """
    return times_of(get_alias(actor=actor, tenant=tenant, name=name), at=at)


def times_of(alias: Alias, *, at: datetime | None = None) -> QuerySet[AliasRevision]:
    """As ``list_alias_times``, of an alias that its caller may see."""
    rows, intervals = revisions_of(alias), _intervals()
    if at is not None:
        rows, intervals = rows.filter(_holds(at, "intervals__")), intervals.filter(_holds(at))
    return rows.prefetch_related(Prefetch("intervals", queryset=intervals))


def list_grants(*, actor: Actor, tenant: str, alias: str) -> QuerySet[AliasGrant]:
    """The tenants that may call the alias, for people of its own tenant."""
    return grants_of(get_alias(actor=actor, tenant=tenant, name=alias))


def grants_of(alias: Alias) -> QuerySet[AliasGrant]:
    """The tenants that may call an alias which its caller may see."""
    return AliasGrant.objects.select_related("alias__tenant", "tenant").filter(alias=alias)


def list_shared_aliases(*, actor: Actor, tenant: str) -> QuerySet[AliasGrant]:
    """The aliases of others that the tenant may call, for its own people, who learn nothing else of them."""
    return AliasGrant.objects.select_related("tenant").filter(tenant=get_tenant(actor=actor, name=tenant))


def get_grantee(*, actor: Actor, name: str) -> Tenant:
    """A tenant to which an alias may be granted."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    return get_tenant(actor=actor, name=name)


def _intervals() -> QuerySet[AliasInterval]:
    named = (
        "alias__tenant",
        "revision",
        "version__adapter__tenant",
        "candidate__adapter",
        "shadow__adapter",
        "release",
    )
    return AliasInterval.objects.select_related(*named).order_by("-valid_from")


def _holds(at: datetime, prefix: str = "") -> Q:
    begun = Q(**{f"{prefix}valid_from__lte": at})
    return begun & (Q(**{f"{prefix}valid_to__isnull": True}) | Q(**{f"{prefix}valid_to__gt": at}))
