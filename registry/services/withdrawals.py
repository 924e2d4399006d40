"""Yank (no new releases) and revoke (stop serving now): two things."""

from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from registry import dispatch, events
from registry.actors import Actor
from registry.errors import StaleState, WrongState
from registry.models import Version
from registry.permissions import Action, require_in_tenant
from registry.ports import PORTS
from registry.selectors import versions_with_relations
from registry.states import VERSION_MOVES, VersionState
from registry.transitions import move_version

# Each try after the first follows on somebody who began to use the version, which nobody can once it is locked.
_TRIES: Final = 4


def yank_version(*, actor: Actor, version: Version, reason: str) -> Version:
    """Keep serving where it serves, but allow no new alias to point at it. Quiet when yanked already."""
    return _withdraw(actor, version, VersionState.YANKED, "yank", reason)


def revoke_version(*, actor: Actor, version: Version, reason: str) -> Version:
    """Stop serving it everywhere, for good. Quiet when revoked already."""
    return _withdraw(actor, version, VersionState.REVOKED, "revoke", reason)


def _withdraw(actor: Actor, version: Version, to: VersionState, action: str, reason: str) -> Version:
    require_in_tenant(actor, Action.WITHDRAW_VERSION, version.adapter.tenant_id)
    for _try in range(_TRIES - 1):
        try:
            return _withdraw_once(actor, version, to, action, reason)
        except StaleState:
            continue
    return _withdraw_once(actor, version, to, action, reason)


@transaction.atomic
def _withdraw_once(actor: Actor, version: Version, to: VersionState, action: str, reason: str) -> Version:
    held = PORTS.hold_users(version_id=version.pk)
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    was = VersionState(locked.state)
    if was is to:
        return locked
    if (was, to) not in VERSION_MOVES:
        raise WrongState(
            _("%(version)s is %(was)s; it can't become %(to)s.") % {"version": locked, "was": was, "to": to}
        )
    move_version(locked, was=was, to=to, message=reason)
    events.version_moved(actor=actor, version=locked, action=action, was=was, to=to, reason=reason)
    PORTS.version_withdrawn(actor=actor, version_id=locked.pk, reason=reason, held=held)
    dispatch.nudge(dispatch.RECONCILE_VERSION, version_id=str(locked.pk))
    return locked
