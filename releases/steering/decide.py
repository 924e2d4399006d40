"""``decide(snapshot, now)``: the next change for one release, or what it waits for."""

from datetime import datetime, timedelta
from typing import Final, assert_never

from releases.judge.verdict import Outcome
from releases.plan.steps import CanaryStep, EvaluateStep, PrewarmStep, ShadowStep
from releases.ports import Evaluation, Figures, Warmth
from releases.states import ENDED_STATES, PauseKind, ReleaseState, StepKind, StepState
from releases.steering.changes import Begin, Change, Pass, Pause, Promote, RollBack, Wait
from releases.steering.snapshot import Judged, Snapshot, Spec, StepView

_FIRST_SENTENCES: Final = {
    StepKind.PREWARM: "It waits for the candidate to be loaded.",
    StepKind.EVALUATE: "It waits for the offline evaluation of the candidate.",
    StepKind.SHADOW: "It waits for the first mirrored answers to compare.",
    StepKind.CANARY: "It waits for the first requests to compare.",
}


def decide(snapshot: Snapshot, now: datetime) -> Change:
    """The next change for one release."""
    if snapshot.state in ENDED_STATES:
        return Wait()
    if harm := _harm(snapshot):
        return RollBack(harm)
    if snapshot.state is ReleaseState.PENDING:
        return Wait()
    if snapshot.stable_trouble and snapshot.pause is PauseKind.GATE:
        # Its pause stays what it is: from trouble a retry would begin the step behind the gate.
        return Wait(f"{snapshot.stable_trouble} Its gate waits for somebody to resume the release all the same.")
    if snapshot.stable_trouble and snapshot.pause is not PauseKind.TROUBLE:
        return Pause(PauseKind.TROUBLE, snapshot.stable_trouble)
    return Wait() if snapshot.state is ReleaseState.PAUSED else _onwards(snapshot, now)


def _harm(snapshot: Snapshot) -> str:
    """Why the candidate may not go on; empty if it may. A pause doesn't matter: its share of the requests goes on."""
    look = snapshot.look
    if snapshot.candidate_trouble or not isinstance(look, Judged):
        return snapshot.candidate_trouble
    return look.verdict.sentence if look.verdict.outcome is Outcome.FAIL else ""


def _onwards(snapshot: Snapshot, now: datetime) -> Change:
    running = snapshot.running
    return _next(snapshot) if running is None else _going_on(running, snapshot, now)


def _next(snapshot: Snapshot) -> Change:
    step = snapshot.next
    if step is None or step.state is not StepState.WAITING:
        return Wait()
    return Promote() if step.kind is StepKind.PROMOTE else Begin(step.index, _FIRST_SENTENCES[step.kind])


def _going_on(step: StepView, snapshot: Snapshot, now: datetime) -> Change:
    spec, look = step.spec, snapshot.look
    match spec:
        case PrewarmStep():
            found = look if isinstance(look, Warmth) else None
            return _prewarming(spec, found, is_over=_is_over(step, spec, now))
        case EvaluateStep():
            figures = look if isinstance(look, Evaluation) else None
            return _evaluating(spec, figures, is_over=_is_over(step, spec, now))
        case ShadowStep() | CanaryStep():
            return _live(step, spec, look if isinstance(look, Judged) else None, now)
        case None:
            return Promote()
        case _:
            assert_never(spec)


def _is_over(step: StepView, spec: Spec, now: datetime) -> bool:
    """Whether the step has taken its longest time."""
    since = step.waits_since or step.started_at
    return since is not None and now - since >= timedelta(minutes=spec.longest_minutes)


def _prewarming(spec: PrewarmStep, warmth: Warmth | None, *, is_over: bool) -> Change:
    if warmth is None:
        return Wait()
    told = f"The candidate is loaded on {warmth.ready} of {_nodes(warmth.wanted)}."
    if warmth.ready >= warmth.wanted > 0:
        return Pass(told)
    why = warmth.trouble or warmth.note
    told = f"{told} {why}" if why else told
    if warmth.trouble:
        return Pause(PauseKind.TROUBLE, told)
    if is_over:
        return Pause(PauseKind.TROUBLE, f"After {_minutes(spec.longest_minutes)}: {told}")
    return Wait(told)


def _evaluating(spec: EvaluateStep, found: Evaluation | None, *, is_over: bool) -> Change:
    if found is None:
        return Wait()
    match found.figures:
        case Figures.KEPT:
            return Pass(found.sentence)
        case Figures.BROKEN:
            return Pause(PauseKind.TROUBLE, found.sentence)
        case Figures.NONE:
            return Pause(PauseKind.TROUBLE, found.sentence) if spec.is_needed else Pass(found.sentence)
        case Figures.AWAITED:
            told = f"After {_minutes(spec.longest_minutes)}: {found.sentence}"
            return Pause(PauseKind.TROUBLE, told) if is_over else Wait(found.sentence)
        case _:
            assert_never(found.figures)


def _live(step: StepView, spec: ShadowStep | CanaryStep, judged: Judged | None, now: datetime) -> Change:
    if judged is None:
        return Wait()
    waits_for = _shortage(step, spec, judged, now)
    if judged.verdict.outcome is Outcome.PASS and not waits_for:
        return Pass(judged.verdict.sentence)
    told = [judged.verdict.sentence, f"It waits for {' and '.join(waits_for)}." if waits_for else ""]
    if _is_over(step, spec, now):
        told.insert(0, f"After {_minutes(spec.longest_minutes)} it can't be told whether to go on.")
        return Pause(PauseKind.HELD, " ".join(filter(None, told)))
    return Wait(" ".join(filter(None, told)))


def _shortage(step: StepView, spec: ShadowStep | CanaryStep, judged: Judged, now: datetime) -> list[str]:
    """What of the least time and the least samples is still to come."""
    short = []
    taken = timedelta(0) if step.started_at is None else now - step.started_at
    if taken < timedelta(minutes=spec.min_minutes):
        short.append(f"{_minutes(spec.min_minutes)} to be over")
    if judged.samples is not None and judged.samples < spec.min_samples:
        what = "mirrored requests" if isinstance(spec, ShadowStep) else "requests to the candidate"
        short.append(f"{spec.min_samples} {what} ({judged.samples} so far)")
    return short


def _minutes(minutes: float) -> str:
    return f"{minutes:g} minute" if minutes == 1 else f"{minutes:g} minutes"


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
