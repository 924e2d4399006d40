"""Moving an alias, and moving it back."""

from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.models import Adapter, Tenant, Version
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant
from registry.selectors import versions_with_relations
from registry.states import VersionState
from releases import events
from releases.errors import NothingToRollBackTo, RevisionChanged, TargetNotServable
from releases.history import rollback_target
from releases.models import Alias
from releases.ports import PORTS
from releases.selectors import alias_history, lock_alias
from releases.states import MoveKind
from releases.transitions import begin_alias, lock_alias_name, move_alias

NO_ALIAS_YET: Final = 0


@transaction.atomic
def set_alias(
    *,
    actor: Actor,
    tenant: Tenant,
    name: str,
    adapter: Adapter,
    version: Version,
    expected_revision: int | None = None,
    reason: str = "",
) -> Alias:
    """Point the alias at ``version``, making it if it isn't there. Quiet when it points there already.

    With ``expected_revision`` it moves only from that revision; 0 means that there is no such alias yet.

    Raises:
        TargetNotServable: the version is another tenant's or adapter's, not approved, or withdrawn.
        RevisionChanged: the alias is at another revision than expected.

    """
    require_in_tenant(actor, Action.MOVE_ALIAS, tenant.pk)
    check_name(name, field="alias")
    lock_alias_name(tenant, name)
    alias = lock_alias(Alias.objects.filter(tenant=tenant, name=name))
    _require_revision(alias, expected_revision)
    if alias is not None and alias.version_id == version.pk:
        return alias
    previous = None if alias is None else alias.version
    target = _lock_target(version, adapter=adapter, tenant=tenant, previous=previous)
    if alias is None:
        alias = begin_alias(actor=actor, tenant=tenant, name=name, version=target, reason=reason)
    else:
        move_alias(alias, actor=actor, to=target, kind=MoveKind.MOVE, reason=reason)
    return _announce(alias, actor=actor, previous=previous, reason=reason)


@transaction.atomic
def roll_back_alias(*, actor: Actor, alias: Alias, reason: str = "", from_revision: int | None = None) -> Alias:
    """Point the alias at the version that served before the current one; see ``releases.history`` for the rule.

    It needs no approval and skips every gate. ``from_revision`` is the revision to get away from: if the alias has
    moved past it already, nothing happens, so that a repeated request is harmless.

    Raises:
        NothingToRollBackTo: no earlier version of this alias is left that isn't revoked.
        RevisionChanged: the alias has never been at ``from_revision``.

    """
    require_in_tenant(actor, Action.ROLL_BACK_ALIAS, alias.tenant_id)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    if from_revision is not None and from_revision < locked.revision:
        return locked
    _require_revision(locked, from_revision)
    previous = locked.version
    move_alias(locked, actor=actor, to=_lock_last_good(locked), kind=MoveKind.ROLLBACK, reason=reason)
    return _announce(locked, actor=actor, previous=previous, reason=reason)


def _require_revision(alias: Alias | None, expected: int | None) -> None:
    revision = NO_ALIAS_YET if alias is None else alias.revision
    if expected is not None and expected != revision:
        raise RevisionChanged(
            _("The alias is at revision %(is)d, not %(expected)d: somebody moved it. Look at it again.")
            % {"is": revision, "expected": expected},
            field="expected_revision",
        )


def _lock_target(version: Version, *, adapter: Adapter, tenant: Tenant, previous: Version | None) -> Version:
    """The version, locked so that it can't be withdrawn before the alias points to it.

    The one that is left is locked with it: the row of history refers to both.
    """
    target = _lock_versions({version.pk} if previous is None else {version.pk, previous.pk})[version.pk]
    if target.adapter_id != adapter.pk or target.adapter.tenant_id != tenant.pk:
        raise TargetNotServable(
            _("%(version)s is not a version of %(adapter)s.") % {"version": target, "adapter": adapter},
            field="version",
        )
    if target.state != VersionState.APPROVED:
        raise TargetNotServable(
            _("%(version)s is %(state)s. An alias can only be moved to an approved version.")
            % {"version": target, "state": target.state},
            field="version",
        )
    if target.purged_at is not None:
        raise TargetNotServable(
            _("The files of %(version)s were removed by retention. Push them again as a new version.")
            % {"version": target},
            field="version",
        )
    return target


def _lock_last_good(alias: Alias) -> Version:
    history = alias_history(alias.pk)
    versions = _lock_versions({row.version_id for row in history})
    lost = {pk for pk, version in versions.items() if version.state == VersionState.REVOKED or version.purged_at}
    target = rollback_target(history, lost=lost)
    if target is None:
        raise NothingToRollBackTo(
            _("%(alias)s has no earlier version to go back to that isn't revoked or removed.") % {"alias": alias}
        )
    return versions[target]


def _lock_versions(keys: set[UUID]) -> dict[UUID, Version]:
    """In the order of their keys, so that two moves don't wait for each other in a circle."""
    versions = versions_with_relations().select_for_update(of=("self",), no_key=True).filter(pk__in=keys)
    return {version.pk: version for version in versions.order_by("pk")}


def _announce(alias: Alias, *, actor: Actor, previous: Version | None, reason: str) -> Alias:
    events.alias_moved(actor=actor, alias=alias, previous=previous, reason=reason)
    target = alias.version_id
    transaction.on_commit(lambda: PORTS.prewarm(actor=actor, version_id=target), robust=True)
    return alias
