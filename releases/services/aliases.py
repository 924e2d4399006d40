"""Moving an alias, and moving it back."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.models import Adapter, Tenant, Version
from registry.naming import check_alias_name
from registry.permissions import Action, require_in_tenant
from registry.states import VersionState
from releases.errors import TargetNotServable
from releases.models import Alias
from releases.selectors import lock_active_release, lock_alias, lock_versions
from releases.services.guards import require_by_hand, require_mover, require_no_release
from releases.services.moves import announce_move, carry_out_move
from releases.services.names import require_name
from releases.services.releases.rollback import Undoing, undo_move, undo_release
from releases.services.revisions import require_revision
from releases.services.splits import end_split
from releases.states import MoveKind
from releases.transitions import begin_alias, lock_alias_name


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

    With ``expected_revision`` it moves only from that revision; 0 means that there is no such alias yet. A split ends.

    Raises:
        TargetNotServable: the version is another tenant's or adapter's, not approved, or withdrawn.
        RevisionChanged: the alias is at another revision than expected.
        NameTaken: the tenant calls an alias of another tenant by that name.
        ReleaseActive: a release of the alias is under way.
        ReleaseNeeded: the alias is moved by releases alone.

    """
    require_in_tenant(actor, Action.MOVE_ALIAS, tenant.pk)
    check_alias_name(name, field="alias")
    lock_alias_name(tenant, name)
    alias = lock_alias(Alias.objects.filter(tenant=tenant, name=name))
    if alias is not None:
        require_mover(alias, actor)
    require_revision(alias, expected_revision)
    if alias is not None and alias.version_id == version.pk:
        return alias
    require_name(name, tenant=tenant, adapter=adapter, alias=alias)
    if alias is None:
        target = _lock_target(version, adapter=adapter, tenant=tenant, previous=None)
        alias = begin_alias(actor=actor, tenant=tenant, name=name, version=target, reason=reason)
        return announce_move(alias, actor=actor, previous=None, reason=reason)
    require_no_release(alias)
    require_by_hand(alias)
    target = _lock_target(version, adapter=adapter, tenant=tenant, previous=alias.version)
    alias = end_split(alias, actor=actor, reason=reason)
    return carry_out_move(alias, actor=actor, to=target, kind=MoveKind.MOVE, reason=reason)


@transaction.atomic
def roll_back_alias(
    *,
    actor: Actor,
    alias: Alias,
    reason: str = "",
    from_revision: int | None = None,
    asked_at: datetime | None = None,
) -> Alias:
    """Have the version answer that answered before: see ``releases.history`` for which one that is.

    A release that is under way ends with it, and the alias keeps its version unless that is revoked or removed. It
    needs no approval, skips every gate and ends a split. ``from_revision`` is the revision to get away from: if the
    alias has moved past it already, nothing happens, so that a repeated request is harmless. ``asked_at`` is when
    somebody asked for it.

    Raises:
        NothingToRollBackTo: no release is under way and no earlier version of this alias is left that isn't revoked.
        RevisionChanged: the alias has never been at ``from_revision``.

    """
    require_in_tenant(actor, Action.ROLL_BACK_ALIAS, alias.tenant_id)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    if from_revision is not None and from_revision < locked.revision:
        return locked
    require_revision(locked, from_revision)
    undoing = Undoing(actor=actor, reason=reason, asked_at=asked_at or timezone.now())
    release = lock_active_release(locked)
    return undo_move(locked, undoing) if release is None else undo_release(release, undoing)


def _lock_target(version: Version, *, adapter: Adapter, tenant: Tenant, previous: Version | None) -> Version:
    """The version, locked so that it can't be withdrawn before the alias points to it.

    The one that is left is locked with it: the row of history refers to both.
    """
    target = lock_versions({version.pk} if previous is None else {version.pk, previous.pk})[version.pk]
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
