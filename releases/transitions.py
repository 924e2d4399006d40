"""The one writer of where an alias points, of its history, and of how far a release and its steps are."""

from datetime import datetime
from typing import Any, TypeVar

from django.db import connection, models
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import IllegalTransition, StaleState
from registry.models import Tenant, Version
from releases.models import Alias, AliasRevision, Release, ReleaseStep
from releases.states import (
    ENDED_STATES,
    RELEASE_MOVES,
    STEP_MOVES,
    MoveKind,
    PauseKind,
    ReleaseState,
    StepState,
)

M = TypeVar("M", bound=models.Model)


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
    _take_over(alias, changes)
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


def move_release(
    release: Release,
    *,
    was: ReleaseState,
    to: ReleaseState,
    pause: PauseKind | None = None,
    **facts: Any,  # noqa: ANN401  field values
) -> None:
    """Move ``release`` from ``was`` to ``to`` by compare-and-set on state and revision, and set ``facts`` with it.

    ``pause`` says why, and is given with a move to paused alone; the state to go back to is kept with it. From one
    running state to the same one is a change of the step, from paused to paused one of the reason.

    Raises:
        IllegalTransition: the move is not in the table; never worth a retry.
        StaleState: somebody else changed the release first.

    """
    if to not in RELEASE_MOVES[was] and not (to is was and was not in ENDED_STATES | {ReleaseState.PENDING}):
        raise IllegalTransition(_("A release does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    now = timezone.now()
    is_paused = to is ReleaseState.PAUSED
    changes = {
        "state": to.value,
        "revision": release.revision + 1,
        "paused_state": (release.paused_state or was.value) if is_paused else "",
        "pause_kind": (pause or PauseKind.PERSON).value if is_paused else "",
        "started_at": release.started_at or (None if to in ENDED_STATES - {ReleaseState.PROMOTED} else now),
        "ended_at": now if to in ENDED_STATES else None,
        **facts,
    }
    if not Release.objects.filter(pk=release.pk, state=was.value, revision=release.revision).update(**changes):
        raise StaleState(_("%(release)s was changed by somebody else meanwhile.") % {"release": release})
    _take_over(release, changes)


def move_step(step: ReleaseStep, *, was: StepState, to: StepState, **facts: Any) -> None:  # noqa: ANN401  field values
    """Move ``step`` from ``was`` to ``to`` by compare-and-set on state and attempt, and set ``facts`` with it.

    To running begins an attempt, from running to running another one; what was found of the last one is forgotten.

    Raises:
        IllegalTransition: the move is not in the table; never worth a retry.
        StaleState: somebody else moved the step first.

    """
    if to not in STEP_MOVES[was]:
        raise IllegalTransition(_("A step does not move from %(was)s to %(to)s.") % {"was": was, "to": to})
    now = timezone.now()
    changes: dict[str, Any] = {"state": to.value, "ended_at": now}
    if to is StepState.RUNNING:
        changes = {
            "state": to.value,
            "attempt": step.attempt + 1,
            "started_at": now,
            "resumed_at": None,
            "sentence": "",
            "verdict": None,
            "judged_at": None,
            "course": None,
        }
    changes |= facts
    if not ReleaseStep.objects.filter(pk=step.pk, state=was.value, attempt=step.attempt).update(**changes):
        raise StaleState(_("%(step)s was moved by somebody else meanwhile.") % {"step": step})
    _take_over(step, changes)


def end_steps(release: Release) -> None:
    """End what is open of a release that the caller has locked."""
    moving = [state.value for state, moves in STEP_MOVES.items() if StepState.ENDED in moves]
    ReleaseStep.objects.filter(release=release, state__in=moving).update(
        state=StepState.ENDED.value, ended_at=timezone.now()
    )


def let_step_go_on(step: ReleaseStep) -> None:
    """Give a running step as much time again, from now on, as its plan gives it without a verdict."""
    changes = {"resumed_at": timezone.now()}
    running = ReleaseStep.objects.filter(pk=step.pk, state=StepState.RUNNING.value, attempt=step.attempt)
    if not running.update(**changes):
        raise StaleState(_("%(step)s was moved by somebody else meanwhile.") % {"step": step})
    _take_over(step, changes)


def note_look(
    release: Release,
    step: ReleaseStep | None,
    *,
    sentence: str,
    of_step: str = "",
    verdict: dict[str, Any] | None = None,
    course: list[dict[str, Any]] | None = None,
    looked_at: datetime,
) -> None:
    """Keep what a look at a release found, unless it was changed meanwhile. A look changes neither state nor revision.

    ``verdict`` (None: nothing was judged), its ``course`` and the sentence are the running step's, too, unless that
    says something else (``of_step``).

    Raises:
        StaleState: somebody changed the release since it was read.

    """
    found: dict[str, Any] = {"sentence": sentence, "looked_at": looked_at}
    same = Release.objects.filter(pk=release.pk, state=release.state, revision=release.revision)
    if not same.update(**found):
        raise StaleState(_("%(release)s was changed by somebody else meanwhile.") % {"release": release})
    _take_over(release, found)
    if step is not None:
        judged = {} if verdict is None else {"verdict": verdict, "judged_at": looked_at, "course": course}
        changes = {"sentence": of_step or sentence, **judged}
        running = ReleaseStep.objects.filter(pk=step.pk, state=StepState.RUNNING.value, attempt=step.attempt)
        if not running.update(**changes):
            raise StaleState(_("%(step)s was moved by somebody else meanwhile.") % {"step": step})
        _take_over(step, changes)


def _take_over(row: M, changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
