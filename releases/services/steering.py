"""Carrying releases on: look → decide → apply one change → look again. Who asks: the controller, and nobody else.

A look may take its time, so it is made without a lock. A change is one short transaction that holds only for the
release as it was looked at; whatever somebody has done meanwhile, a second controller too, makes it void, and the next
look begins with that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from registry.actors import Actor, system_actor
from registry.errors import StaleState
from registry.models import Version
from registry.states import VersionState
from releases.judge.judge import judge
from releases.judge.verdict import Outcome, Verdict
from releases.models import Release, ReleaseStep
from releases.plan.judging import judge_settings
from releases.plan.parse import plan_of
from releases.plan.steps import CanaryStep, EvaluateStep, PrewarmStep, ShadowStep
from releases.ports import PORTS, Traffic
from releases.selectors import lock_release, releases_with_relations
from releases.services.releases.rollback import Undoing, undo_release
from releases.services.releases.steps import begin_step, hold_release, pass_step, promote
from releases.states import RUNNING_STATES, PauseKind, ReleaseState, StepKind, StepState
from releases.steering.changes import Begin, Change, Pass, Pause, Promote, RollBack, Wait
from releases.steering.course import course_of
from releases.steering.decide import decide
from releases.steering.records import record_of
from releases.steering.snapshot import LIVE_STEPS, Judged, Look, Snapshot, Spec, StepView
from releases.steering.windows import end_of, whole_slices
from releases.transitions import note_look

_STEERED: Final = sorted(state.value for state in RUNNING_STATES | {ReleaseState.PAUSED})
_SHAPES: Final[dict[StepKind, type[Spec]]] = {
    StepKind.PREWARM: PrewarmStep,
    StepKind.EVALUATE: EvaluateStep,
    StepKind.SHADOW: ShadowStep,
    StepKind.CANARY: CanaryStep,
}
_UNCOUNTED: Final = Verdict(Outcome.INCONCLUSIVE, "The requests could not be counted in the time there is.", ())


@dataclass(frozen=True, slots=True)
class _Seen:
    """A release with its steps as they were read together."""

    release: Release
    rows: tuple[ReleaseStep, ...]
    views: tuple[StepView, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look found; where requests were judged ``verdict`` is its record, and ``course`` what it was made of.

    Where they could not be counted it has neither: the last one stays.
    """

    look: Look | None = None
    verdict: dict[str, Any] | None = None
    course: list[dict[str, Any]] | None = None


def releases_to_steer() -> list[UUID]:
    """The releases that are under way, those first that nobody has looked at for longest."""
    found = Release.objects.filter(state__in=_STEERED).order_by(F("looked_at").asc(nulls_first=True), "made_at")
    return list(found.values_list("pk", flat=True))


def steer_release(*, release_id: UUID) -> bool:
    """Make the next change of a release, if one is due; whether it was made. Quiet while somebody else does it."""
    with _turn(release_id) as is_mine:
        return is_mine and _steer(release_id)


def _steer(release_id: UUID) -> bool:
    seen = _read(release_id)
    if seen is None:
        return False
    actor, now = system_actor("releases"), timezone.now()
    found = _look(seen, actor, now)
    snapshot = Snapshot(
        state=ReleaseState(seen.release.state),
        pause=PauseKind(seen.release.pause_kind) if seen.release.pause_kind else None,
        steps=seen.views,
        look=found.look,
        stable_trouble=_stable_trouble(seen.release.stable),
        candidate_trouble=_candidate_trouble(seen.release.candidate),
    )
    change = decide(snapshot, now)
    try:
        return _apply(seen, found, change, actor=actor, looked_at=now)
    except StaleState:
        return False


@contextmanager
def _turn(release_id: UUID) -> Iterator[bool]:
    """Whether nobody else is at this release now. The turn ends with the connection of who has it, too."""
    key = f"steering {release_id}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [key])
        is_mine = bool(cursor.fetchone()[0])
    try:
        yield is_mine
    finally:
        if is_mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [key])


def _read(release_id: UUID) -> _Seen | None:
    """The release first: whoever changes a step after that has changed its revision, too, which makes a change void."""
    release = releases_with_relations().filter(pk=release_id, state__in=_STEERED).first()
    if release is None:
        return None
    rows = tuple(ReleaseStep.objects.filter(release=release).order_by("index"))
    return _Seen(release, rows, tuple(_view(row) for row in rows))


def _view(row: ReleaseStep) -> StepView:
    kind = StepKind(row.kind)
    shape = _SHAPES.get(kind)
    return StepView(
        index=row.index,
        kind=kind,
        state=StepState(row.state),
        spec=None if shape is None else shape.model_validate(row.spec, strict=False),
        started_at=row.started_at,
        waits_since=row.resumed_at or row.started_at,
    )


def _look(seen: _Seen, actor: Actor, now: datetime) -> _Found:
    """What is new of the standing step; a paused release is looked at only where requests are split."""
    step = Snapshot(state=ReleaseState(seen.release.state), steps=seen.views).standing
    if step is None or step.started_at is None:
        return _Found()
    if step.kind in LIVE_STEPS:
        return _judge(seen, step, step.started_at, now)
    if seen.release.state == ReleaseState.PAUSED or step.state is not StepState.RUNNING:
        return _Found()
    release, since = seen.release, step.started_at
    match step.spec:
        case PrewarmStep(nodes=nodes):
            versions = {"version_id": release.candidate_id, "like": release.stable_id}
            return _Found(PORTS.warm_up(actor=actor, nodes=nodes, since=since, **versions))
        case EvaluateStep():
            versions = {"candidate_id": release.candidate_id, "stable_id": release.stable_id}
            return _Found(PORTS.evaluation(actor=actor, since=since, **versions))
        case _:
            return _Found()


def _judge(seen: _Seen, step: StepView, since: datetime, now: datetime) -> _Found:
    plan = plan_of(seen.release.plan)
    slice_s = plan.judge.slice_s
    count = _new_count(seen, since, slice_s=slice_s, now=now)
    if not count or not isinstance(step.spec, ShadowStep | CanaryStep):
        return _Found()
    window = PORTS.window(
        Traffic(
            alias_id=seen.release.alias_id,
            stable_id=seen.release.stable_id,
            candidate_id=seen.release.candidate_id,
            since=since,
            until=end_of(since, slice_s=slice_s, count=count),
            slice_s=slice_s,
            is_shadow=step.kind is StepKind.SHADOW,
        )
    )
    if window is None:
        return _Found(Judged(_UNCOUNTED, samples=None))
    verdict = judge(window, judge_settings(plan, step.spec))
    samples = sum(part.canary.requests for part in window.slices)
    course = course_of(window, since=since, slice_s=slice_s)
    return _Found(Judged(verdict, samples=samples), record_of(verdict, window), course)


def _new_count(seen: _Seen, since: datetime, *, slice_s: float, now: datetime) -> int:
    """How many slices of the step's window are complete; 0: no more than at the last look that was kept."""
    looked_at = seen.release.looked_at
    known = 0 if looked_at is None else whole_slices(since, slice_s=slice_s, now=looked_at)
    count = whole_slices(since, slice_s=slice_s, now=now)
    return count if count > known else 0


def _stable_trouble(stable: Version) -> str:
    if stable.state != VersionState.REVOKED and stable.purged_at is None:
        return ""
    return (
        f"The stable version {stable} was revoked or removed, so nothing can be compared with it. "
        "Promote the release, or roll it back to the last good version."
    )


def _candidate_trouble(candidate: Version) -> str:
    if candidate.purged_at is not None:
        return f"The candidate {candidate} was removed."
    if candidate.state != VersionState.APPROVED:
        return f"The candidate {candidate} is {candidate.state}."
    return ""


@transaction.atomic
def _apply(seen: _Seen, found: _Found, change: Change, *, actor: Actor, looked_at: datetime) -> bool:
    if isinstance(change, Wait):
        _note(seen.release, seen, found, change.sentence, looked_at)
        return False
    release = lock_release(seen.release.pk)
    if (release.revision, release.state) != (seen.release.revision, seen.release.state):
        return False
    _note(release, seen, found, "", looked_at)
    match change:
        case Begin(sentence=sentence):
            begin_step(release, actor=actor, sentence=sentence)
        case Pass(sentence):
            pass_step(release, actor=actor, sentence=sentence)
        case Promote():
            promote(release, actor=actor, reason="every step has passed")
        case Pause(kind, sentence):
            hold_release(release, actor=actor, pause=kind, sentence=sentence)
        case RollBack(sentence):
            undo_release(release, Undoing(actor=actor, reason=sentence, asked_at=timezone.now()))
    return True


def _note(release: Release, seen: _Seen, found: _Found, sentence: str, looked_at: datetime) -> None:
    """Keep what the look found, if that is new. A paused release goes on saying what it is paused for."""
    told = sentence or release.sentence
    judged = found.look if isinstance(found.look, Judged) else None
    if judged is None and told == release.sentence:
        return
    running = next((row for row in seen.rows if row.state == StepState.RUNNING), None)
    of_step = "" if sentence or judged is None else judged.verdict.sentence
    facts: dict[str, Any] = {"verdict": found.verdict, "course": found.course}
    note_look(release, running, sentence=told, of_step=of_step, looked_at=looked_at, **facts)
