"""The one writer of where an alias points, and of its history."""

from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import StaleState
from registry.models import Tenant, Version
from releases.models import Alias, AliasRevision
from releases.states import MoveKind


def lock_alias_name(tenant: Tenant, name: str) -> None:
    """Hold the name until the transaction ends, whether or not it exists: two first moves take turns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"alias:{tenant.pk}:{name}"])


def begin_alias(*, actor: Actor, tenant: Tenant, name: str, version: Version, reason: str) -> Alias:
    """Make the alias at revision 1, with its first row of history."""
    alias = Alias.objects.create(
        tenant=tenant,
        name=name,
        adapter=version.adapter,
        version=version,
        revision=1,
        moved_by=MoveKind.SET.value,
        updated_at=timezone.now(),
    )
    _write_history(alias, actor=actor, previous=None, reason=reason)
    return alias


def move_alias(alias: Alias, *, actor: Actor, to: Version, kind: MoveKind, reason: str) -> None:
    """Point ``alias`` at ``to`` by compare-and-set on its revision. Raises ``StaleState`` if it moved meanwhile."""
    previous = alias.version
    changes = {
        "adapter": to.adapter,
        "version": to,
        "revision": alias.revision + 1,
        "moved_by": kind.value,
        "updated_at": timezone.now(),
    }
    if not Alias.objects.filter(pk=alias.pk, revision=alias.revision).update(**changes):
        raise StaleState(_("%(alias)s was moved by somebody else meanwhile.") % {"alias": alias})
    for name, value in changes.items():
        setattr(alias, name, value)
    _write_history(alias, actor=actor, previous=previous, reason=reason)


def _write_history(alias: Alias, *, actor: Actor, previous: Version | None, reason: str) -> None:
    AliasRevision.objects.create(
        alias=alias,
        number=alias.revision,
        version=alias.version,
        previous_version=previous,
        kind=alias.moved_by,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name,
        reason=reason,
        at=alias.updated_at,
    )
