"""Single changes of a release and its steps, for people's verbs and for the controller alike.

The caller has locked the release (``lock_release``) and may do it. Each writes one audit record of the release.
"""

from typing import Final

from registry.actors import Actor
from releases import events
from releases.models import Release, ReleaseStep
from releases.selectors import lock_versions
from releases.services.moves import carry_out_move
from releases.services.splits import SplitWish, end_split, write_split
from releases.services.targets import require_candidate
from releases.states import (
    STATE_OF_STEP,
    MoveKind,
    PauseKind,
    ReleaseState,
    StepKind,
    StepState,
)
from releases.transitions import end_steps, move_release, move_step

_BASIS_POINTS_PER_PERCENT: Final = 100


def begin_step(
    release: Release, *, actor: Actor, action: str = "begin_step", reason: str = "", sentence: str = ""
) -> ReleaseStep:
    """Begin the release's present step, or another attempt at it, with the share of requests that belongs to it.

    Raises:
        TargetNotServable: the candidate may not answer any more.

    """
    step = present_step(release)
    candidate = lock_versions({release.candidate_id, release.stable_id})[release.candidate_id]
    require_candidate(release.alias, candidate, field="candidate")
    was = ReleaseState(release.state)
    move_step(step, was=StepState(step.state), to=StepState.RUNNING, sentence=sentence)
    move_release(release, was=was, to=STATE_OF_STEP[StepKind(step.kind)], sentence=sentence)
    wish = _wish(release, step)
    if wish is not None:
        write_split(release.alias, actor=actor, wish=wish, reason=reason or str(release))
    events.release_moved(actor=actor, release=release, action=action, was=was, reason=reason, step=step)
    return step


def pass_step(release: Release, *, actor: Actor, sentence: str) -> ReleaseStep:
    """Let the present step have passed; a gate then waits for a person, else the next step may begin."""
    step = present_step(release)
    was = ReleaseState(release.state)
    move_step(step, was=StepState.RUNNING, to=StepState.PASSED, sentence=sentence)
    if step.spec.get("gate"):
        told = f"Step {step.index + 1} ({step.kind}) has passed; its gate waits for somebody to resume the release."
        move_release(release, was=was, to=ReleaseState.PAUSED, pause=PauseKind.GATE, step=step.index + 1, sentence=told)
    else:
        move_release(release, was=was, to=was, step=step.index + 1, sentence=sentence)
    events.release_moved(actor=actor, release=release, action="pass_step", was=was, reason="", step=step)
    return step


def hold_release(
    release: Release,
    *,
    actor: Actor,
    pause: PauseKind,
    sentence: str,
    reason: str = "",
) -> Release:
    """Pause a release that runs, or have a paused one wait for something else: ``sentence`` says what.

    The share of the requests stays as it is.
    """
    was = ReleaseState(release.state)
    step = present_step(release)
    move_release(release, was=was, to=ReleaseState.PAUSED, pause=pause, sentence=sentence)
    events.release_moved(actor=actor, release=release, action="pause", was=was, reason=reason, step=step)
    return release


def promote(release: Release, *, actor: Actor, reason: str = "") -> Release:
    """End the split, point the alias at the candidate, and let the release be promoted.

    Steps that haven't passed are skipped. The version that is left stays warm for as long as the plan says.

    Raises:
        TargetNotServable: the candidate may not answer any more.

    """
    versions = lock_versions({release.candidate_id, release.stable_id})
    candidate = versions[release.candidate_id]
    require_candidate(release.alias, candidate, field="candidate")
    was = ReleaseState(release.state)
    last = _skip_to_the_end(release)
    release.alias = end_split(release.alias, actor=actor, reason=reason)
    release.alias = carry_out_move(release.alias, actor=actor, to=candidate, kind=MoveKind.MOVE, reason=reason)
    move_release(release, was=was, to=ReleaseState.PROMOTED, step=last.index, sentence="")
    events.release_moved(actor=actor, release=release, action="promote", was=was, reason=reason)
    return release


def end_release(release: Release, *, actor: Actor, to: ReleaseState, action: str, reason: str) -> Release:
    """End the split and the steps of a release that isn't over, and let it be aborted or rolled back."""
    was = ReleaseState(release.state)
    release.alias = end_split(release.alias, actor=actor, reason=reason)
    end_steps(release)
    move_release(release, was=was, to=to, sentence=reason)
    events.release_moved(actor=actor, release=release, action=action, was=was, reason=reason)
    return release


def present_step(release: Release) -> ReleaseStep:
    """The step that runs or is next."""
    return ReleaseStep.objects.get(release=release, index=release.step)


def _open_steps(release: Release) -> list[ReleaseStep]:
    states = [StepState.WAITING.value, StepState.RUNNING.value]
    return list(ReleaseStep.objects.filter(release=release, state__in=states).order_by("index"))


def _skip_to_the_end(release: Release) -> ReleaseStep:
    *skipped, last = _open_steps(release)
    for step in skipped:
        move_step(step, was=StepState(step.state), to=StepState.SKIPPED)
    if last.state == StepState.WAITING:
        move_step(last, was=StepState.WAITING, to=StepState.RUNNING)
    move_step(last, was=StepState.RUNNING, to=StepState.PASSED)
    return last


def _wish(release: Release, step: ReleaseStep) -> SplitWish | None:
    """The share of the alias's requests that belongs to the step; None where it has none."""
    if step.kind not in {StepKind.SHADOW, StepKind.CANARY}:
        return None
    candidate = release.candidate
    share = round(step.spec["percent"] * _BASIS_POINTS_PER_PERCENT)
    # One salt for the whole release: who has the candidate keeps it while the share grows.
    salt = release.pk.hex[:16]
    if step.kind == StepKind.SHADOW:
        return SplitWish(candidate=candidate, shadow=candidate, shadow_basis_points=share, salt=salt)
    return SplitWish(candidate=candidate, basis_points=share, allow=tuple(step.spec["tenants"]), salt=salt)
