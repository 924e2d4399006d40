"""The alias that every adapter with an approved version has, for those who name none."""

from uuid import UUID

from django.db import transaction

from registry.actors import Actor
from registry.naming import default_alias_name
from registry.selectors import get_version_by_id
from releases import events
from releases.models import Alias
from releases.transitions import begin_alias


@transaction.atomic
def begin_default_alias(*, actor: Actor, version_id: UUID) -> None:
    """Let the adapter's default stand for its first approved version, in the transaction that approves it.

    Quiet when the adapter has one. The approvals of a tenant take turns, and nobody else makes a default. Nothing is
    warmed for it: to approve is not to release.
    """
    version = get_version_by_id(version_id=version_id)
    tenant, name = version.adapter.tenant, default_alias_name(version.adapter.name)
    if Alias.objects.filter(tenant=tenant, name=name).exists():
        return
    reason = "The first approved version."
    alias = begin_alias(actor=actor, tenant=tenant, name=name, version=version, reason=reason)
    events.alias_moved(actor=actor, alias=alias, previous=None, reason=reason)
