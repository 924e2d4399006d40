"""Reads. Each takes the actor and sees only what the actor may see."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound
from registry.permissions import Action
from registry.selectors import MAX_LISTED, get_tenant
from releases.models import Alias, AliasRevision


def aliases_with_relations() -> QuerySet[Alias]:
    """Aliases with everything that naming them or showing them needs."""
    return Alias.objects.select_related("tenant", "adapter__tenant", "version__adapter__tenant")


def lock_alias(found: QuerySet[Alias]) -> Alias | None:
    """The one alias found, locked until the transaction ends, or None.

    It is locked alone and then read with its relations: a query that waits for the lock while joined to the version
    finds nothing any more when the alias has moved meanwhile.
    """
    key = found.select_for_update(no_key=True).values_list("pk", flat=True).first()
    return None if key is None else aliases_with_relations().get(pk=key)


def get_alias(*, actor: Actor, tenant: str, name: str, action: Action = Action.VIEW_TENANT) -> Alias:
    owner = get_tenant(actor=actor, name=tenant, action=action)
    alias = aliases_with_relations().filter(tenant=owner, name=name).first()
    if alias is None:
        raise NotFound(
            _("Tenant %(tenant)s has no alias named %(name)s.") % {"tenant": tenant, "name": name}, field="alias"
        )
    return alias


def list_aliases(*, actor: Actor, tenant: str) -> QuerySet[Alias]:
    owner = get_tenant(actor=actor, name=tenant)
    return aliases_with_relations().filter(tenant=owner).order_by("name")


def list_alias_history(*, actor: Actor, tenant: str, name: str) -> QuerySet[AliasRevision]:
    """Newest first; the oldest of a very long history are left out."""
    alias = get_alias(actor=actor, tenant=tenant, name=name)
    return (
        AliasRevision.objects.select_related("version__adapter", "previous_version")
        .filter(alias=alias)
        .order_by("-number")[:MAX_LISTED]
    )
