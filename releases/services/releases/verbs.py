"""What people do to a release. Each verb is quiet when it has been done already, so that a repeated one is harmless."""

from django.db import transaction
from django.utils.translation import gettext as _

from registry import dispatch
from registry.actors import Actor
from registry.permissions import Action, require_in_tenant
from releases import events
from releases.errors import ApprovalsMissing, WrongReleaseState
from releases.models import Release
from releases.selectors import lock_release
from releases.services.guards import require_mover
from releases.services.releases.steps import begin_step, end_release, hold_release, present_step, promote
from releases.services.revisions import require_release_revision
from releases.states import ENDED_STATES, RUNNING_STATES, PauseKind, ReleaseState, StepState
from releases.transitions import let_step_go_on, move_release


@transaction.atomic
def start_release(*, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None) -> Release:
    """Begin the first step. Quiet when the release was started already.

    Raises:
        ApprovalsMissing: its plan asks for more approvals than it has.
        WrongReleaseState: it is over.
        TargetNotServable: the candidate may not answer any more.
        RevisionChanged: the release is at another revision than expected.

    """
    require_in_tenant(actor, Action.START_RELEASE, release.alias.tenant_id)
    locked = lock_release(release.pk)
    require_mover(locked.alias, actor)
    if locked.state in RUNNING_STATES or locked.state == ReleaseState.PAUSED:
        return locked
    _require(locked, locked.state == ReleaseState.PENDING, _("started"))
    require_release_revision(locked, expected_revision)
    _require_approvals(locked)
    begin_step(locked, actor=actor, action="start", reason=reason)
    return _steered(locked)


@transaction.atomic
def pause_release(*, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None) -> Release:
    """Let nothing change until somebody resumes it; requests go on being shared as they are. Quiet when it is paused.

    Raises:
        WrongReleaseState: it has not started, or is over.
        RevisionChanged: the release is at another revision than expected.

    """
    require_in_tenant(actor, Action.STEER_RELEASE, release.alias.tenant_id)
    locked = lock_release(release.pk)
    if locked.state == ReleaseState.PAUSED:
        return locked
    _require(locked, locked.state in RUNNING_STATES, _("paused"))
    require_release_revision(locked, expected_revision)
    # A record, in English whoever reads it later; so are all sentences of releases.
    told = f"{actor.name} paused it; it waits for somebody to resume it."
    return hold_release(locked, actor=actor, pause=PauseKind.PERSON, sentence=told, reason=reason)


@transaction.atomic
def resume_release(
    *, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None
) -> Release:
    """Go on: with the step that runs, which has as much time again, or past a gate. Quiet when it runs already.

    Raises:
        WrongReleaseState: it has not started, is over, or is in trouble and takes a retry.
        RevisionChanged: the release is at another revision than expected.

    """
    require_in_tenant(actor, Action.STEER_RELEASE, release.alias.tenant_id)
    locked = lock_release(release.pk)
    require_mover(locked.alias, actor)
    if locked.state in RUNNING_STATES:
        return locked
    _require(locked, locked.state == ReleaseState.PAUSED, _("resumed"))
    require_release_revision(locked, expected_revision)
    if locked.pause_kind == PauseKind.TROUBLE:
        raise WrongReleaseState(
            _("%(release)s is in trouble: %(sentence)s It takes a retry, or an end.")
            % {"release": locked, "sentence": locked.sentence}
        )
    step = present_step(locked)
    if step.state == StepState.RUNNING:
        let_step_go_on(step)
    was = ReleaseState(locked.state)
    move_release(locked, was=was, to=ReleaseState(locked.paused_state), sentence=step.sentence)
    events.release_moved(actor=actor, release=locked, action="resume", was=was, reason=reason, step=step)
    return _steered(locked)


@transaction.atomic
def retry_release(*, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None) -> Release:
    """Begin the paused step anew: another attempt, which is judged by itself. Quiet when the release runs already.

    Raises:
        WrongReleaseState: it has not started, is over, or waits at a gate, where there is nothing to try again.
        TargetNotServable: the candidate may not answer any more.
        RevisionChanged: the release is at another revision than expected.

    """
    require_in_tenant(actor, Action.STEER_RELEASE, release.alias.tenant_id)
    locked = lock_release(release.pk)
    require_mover(locked.alias, actor)
    if locked.state in RUNNING_STATES:
        return locked
    is_paused = locked.state == ReleaseState.PAUSED and locked.pause_kind != PauseKind.GATE
    _require(locked, is_paused, _("tried again"))
    require_release_revision(locked, expected_revision)
    begin_step(locked, actor=actor, action="retry", reason=reason)
    return _steered(locked)


@transaction.atomic
def promote_release(
    *, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None
) -> Release:
    """Skip to the end: the alias points at the candidate, in whatever state the release was. Quiet when promoted.

    Raises:
        ApprovalsMissing: it has not started, and its plan asks for more approvals than it has.
        WrongReleaseState: it was aborted or rolled back.
        TargetNotServable: the candidate may not answer any more.
        RevisionChanged: the release is at another revision than expected.

    """
    require_in_tenant(actor, Action.PROMOTE_RELEASE, release.alias.tenant_id)
    locked = lock_release(release.pk)
    require_mover(locked.alias, actor)
    if locked.state == ReleaseState.PROMOTED:
        return locked
    _require(locked, locked.state not in ENDED_STATES, _("promoted"))
    require_release_revision(locked, expected_revision)
    if locked.state == ReleaseState.PENDING:
        _require_approvals(locked)
    return promote(locked, actor=actor, reason=reason)


@transaction.atomic
def abort_release(*, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None) -> Release:
    """Give it up: the alias stays where it is, and its own version answers everything. Quiet when aborted already.

    Raises:
        WrongReleaseState: it was promoted or rolled back.
        RevisionChanged: the release is at another revision than expected.

    """
    require_in_tenant(actor, Action.STEER_RELEASE, release.alias.tenant_id)
    locked = lock_release(release.pk)
    if locked.state == ReleaseState.ABORTED:
        return locked
    _require(locked, locked.state not in ENDED_STATES, _("aborted"))
    require_release_revision(locked, expected_revision)
    return end_release(locked, actor=actor, to=ReleaseState.ABORTED, action="abort", reason=reason)


def _require(release: Release, is_possible: bool, done: str) -> None:  # noqa: FBT001  a condition and its words
    if not is_possible:
        paused = f" ({release.pause_kind})" if release.pause_kind else ""
        raise WrongReleaseState(
            _("%(release)s is %(state)s%(paused)s; so it can't be %(done)s.")
            % {"release": release, "state": release.state, "paused": paused, "done": done}
        )


def _require_approvals(release: Release) -> None:
    given, required = release.approvals.filter(digest=release.digest).count(), int(release.plan["approvals"])
    if given < required:
        raise ApprovalsMissing(
            _("%(release)s has %(given)d of the %(required)d approvals that its plan asks for.")
            % {"release": release, "given": given, "required": required}
        )


def _steered(release: Release) -> Release:
    """Have the controller look at it as soon as this is committed."""
    dispatch.nudge(dispatch.STEER_RELEASE, release_id=str(release.pk))
    return release
