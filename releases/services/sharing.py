"""Aliases that other tenants may call, each by a name of its own. What they stand for stays their owner's to decide."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput, NameTaken
from registry.models import Tenant
from registry.naming import check_name
from registry.permissions import Action, require_on_platform
from releases import events
from releases.models import Alias, AliasGrant
from releases.selectors import lock_alias
from releases.transitions import lock_alias_name


@transaction.atomic
def grant_alias(*, actor: Actor, alias: Alias, tenant: Tenant, name: str = "", reason: str = "") -> AliasGrant:
    """Let the tenant call the alias by ``name`` (without one, by the alias's own). Quiet when it may already.

    Its requests count against its own limits, and are its own in records and usage. It sees nothing else of the owner.

    Raises:
        InvalidInput: the tenant is the owner.
        BadName: the name is none, or an adapter's default.
        NameTaken: the tenant calls this or another alias by another, or by that name.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    name = check_name(name or alias.name)
    if tenant.pk == alias.tenant_id:
        raise InvalidInput(_("%(alias)s is the tenant's own alias.") % {"alias": alias}, field="tenant")
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    lock_alias_name(tenant, name)
    found = AliasGrant.objects.select_related("tenant").filter(alias=locked, tenant=tenant).first()
    if found is not None and found.name == name:
        return found
    if found is not None:
        raise NameTaken(
            _("%(tenant)s calls %(alias)s by the name %(name)s. End that grant first.")
            % {"tenant": tenant, "alias": locked, "name": found.name},
            field="name",
        )
    _require_free(tenant, name)
    made = AliasGrant.objects.create(alias=locked, tenant=tenant, name=name, granted_at=timezone.now())
    events.alias_granted(actor=actor, grant=made, reason=reason)
    return made


@transaction.atomic
def end_grant(*, actor: Actor, alias: Alias, tenant: Tenant, reason: str = "") -> None:
    """Let the tenant call the alias no more. Quiet when it may not already."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    found = AliasGrant.objects.select_related("alias__tenant", "tenant").filter(alias=locked, tenant=tenant).first()
    if found is None:
        return
    events.grant_ended(actor=actor, grant=found, reason=reason)
    found.delete()


def _require_free(tenant: Tenant, name: str) -> None:
    has_own = Alias.objects.filter(tenant=tenant, name=name).exists()
    if has_own or AliasGrant.objects.filter(tenant=tenant, name=name).exists():
        raise NameTaken(
            _("%(tenant)s has an alias named %(name)s. Give this one another name.") % {"tenant": tenant, "name": name},
            field="name",
        )
