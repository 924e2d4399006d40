"""The way back: from a release that is under way, and from where an alias was moved. One transaction, no approval."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.models import Version
from registry.permissions import Action, require_in_tenant
from releases import events
from releases.errors import NothingToRollBackTo, WrongReleaseState
from releases.models import Alias, Release, Rollback
from releases.ports import PORTS
from releases.selectors import (
    alias_history,
    lock_active_release,
    lock_promoted_release,
    lock_release,
    releases_with_relations,
)
from releases.services.moves import carry_out_move, lock_way_back
from releases.services.releases.steps import end_release
from releases.services.splits import end_split
from releases.states import MoveKind, ReleaseState
from releases.transitions import move_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """Who goes back, why, and since when that is wanted."""

    actor: Actor
    reason: str
    asked_at: datetime


@transaction.atomic
def roll_back_release(*, actor: Actor, release: Release, reason: str = "", asked_at: datetime | None = None) -> Release:
    """Have the candidate of a release answer nothing more, at once, in whatever state the release is.

    Of a promoted release the alias goes back, too, and a release that is under way from there ends first. Quiet when it
    was rolled back or aborted already: nothing of it answers. ``asked_at`` is when somebody asked for it.

    Raises:
        WrongReleaseState: it was promoted, and the alias has moved on since.
        NothingToRollBackTo: it was promoted, and no earlier version is left that isn't revoked.

    """
    require_in_tenant(actor, Action.ROLL_BACK_ALIAS, release.alias.tenant_id)
    undoing = Undoing(actor=actor, reason=reason, asked_at=asked_at or timezone.now())
    locked = lock_release(release.pk)
    if locked.state in {ReleaseState.ROLLED_BACK, ReleaseState.ABORTED}:
        return locked
    if locked.state != ReleaseState.PROMOTED:
        undo_release(locked, undoing)
        return locked
    standing = lock_promoted_release(locked.alias, alias_history(locked.alias_id))
    if standing is None or standing.pk != locked.pk:
        raise WrongReleaseState(
            _("%(alias)s has moved on since %(release)s: it points at %(version)s. Roll the alias back instead.")
            % {"alias": locked.alias, "release": locked, "version": locked.alias.version}
        )
    _undo_promoted(locked, undoing)
    return releases_with_relations().get(pk=release.pk)


def undo_release(release: Release, undoing: Undoing) -> Alias:
    """End a locked release that isn't over. Its alias has a new revision of the same version, or of the last good one.

    Without any good one the alias stays as it is: the candidate answers nothing more all the same.
    """
    actor, reason = undoing.actor, undoing.reason
    history = alias_history(release.alias_id)
    before = lock_promoted_release(release.alias, history)
    back = lock_way_back(release.alias, history, may_stay=True)
    end_release(release, actor=actor, to=ReleaseState.ROLLED_BACK, action="roll_back", reason=reason)
    alias = release.alias
    if back is not None:
        alias = carry_out_move(alias, actor=actor, to=back, kind=MoveKind.ROLLBACK, reason=reason)
        if before is not None and back.pk != release.stable_id:
            _end_promoted(before, undoing)
    release.alias = alias
    _keep(alias, undoing, left=release.candidate, release=release)
    return alias


def undo_move(alias: Alias, undoing: Undoing) -> Alias:
    """Point a locked alias without a release under way at the version that answered before.

    Raises:
        NothingToRollBackTo: no earlier version of this alias is left that isn't revoked.

    """
    actor, reason = undoing.actor, undoing.reason
    history = alias_history(alias.pk)
    release = lock_promoted_release(alias, history)
    back = lock_way_back(alias, history, may_stay=False)
    if back is None:
        raise NothingToRollBackTo(
            _("%(alias)s has no earlier version to go back to that isn't revoked or removed.") % {"alias": alias}
        )
    left = alias.version
    alias = end_split(alias, actor=actor, reason=reason)
    alias = carry_out_move(alias, actor=actor, to=back, kind=MoveKind.ROLLBACK, reason=reason)
    if release is not None:
        _end_promoted(release, undoing)
    _keep(alias, undoing, left=left, release=release)
    return alias


def _undo_promoted(release: Release, undoing: Undoing) -> None:
    """Go back from where a locked release brought its alias, which is there still."""
    alias = release.alias
    under_way = lock_active_release(alias)
    if under_way is not None:
        alias = undo_release(under_way, undoing)
    # From a version that is revoked or removed the first way back was that of the alias already.
    if alias.version_id == release.candidate_id:
        undo_move(alias, undoing)


def _end_promoted(release: Release, undoing: Undoing) -> None:
    """Tell of a release whose alias went back from where it was brought."""
    actor, reason, was = undoing.actor, undoing.reason, ReleaseState(release.state)
    move_release(release, was=was, to=ReleaseState.ROLLED_BACK, sentence=reason)
    events.release_moved(actor=actor, release=release, action="roll_back", was=was, reason=reason)


def _keep(alias: Alias, undoing: Undoing, *, left: Version, release: Release | None) -> None:
    """Keep when it was asked for and done, for the time it took to be known; and cool what was left."""
    Rollback.objects.create(
        alias=alias,
        release=release,
        revision=alias.revision,
        left=left,
        asked_at=undoing.asked_at,
        committed_at=timezone.now(),
    )
    actor, reason, version_id = undoing.actor, undoing.reason, left.pk
    transaction.on_commit(lambda: PORTS.cool(actor=actor, version_id=version_id, reason=reason), robust=True)
