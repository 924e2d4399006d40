"""Words of releases that the database knows, too."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class MoveKind(StrEnum):
    """Why an alias points where it points."""

    SET = "set"
    MOVE = "move"
    ROLLBACK = "rollback"


class ReleaseState(StrEnum):
    """How far a release is. Before the first share of live requests it is prewarming or shadowing."""

    PENDING = "pending"
    PREWARMING = "prewarming"
    SHADOWING = "shadowing"
    PROGRESSING = "progressing"
    PAUSED = "paused"
    PROMOTED = "promoted"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled_back"


class StepKind(StrEnum):
    """What a step of a release does; the offline evaluation is part of ``prewarming``."""

    PREWARM = "prewarm"
    EVALUATE = "evaluate"
    SHADOW = "shadow"
    CANARY = "canary"
    PROMOTE = "promote"


class StepState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    SKIPPED = "skipped"
    ENDED = "ended"  # with its release, before it had passed


class PauseKind(StrEnum):
    """Why a release is paused, which decides what a resume does."""

    PERSON = "person"  # goes on with the step that runs
    GATE = "gate"  # the step has passed and asks for a person: goes on with the next
    HELD = "held"  # the step's longest time is over without a verdict: goes on with the step, with as much time again
    TROUBLE = "trouble"  # the step can't be carried out: takes a retry


RUNNING_STATES: Final = frozenset({ReleaseState.PREWARMING, ReleaseState.SHADOWING, ReleaseState.PROGRESSING})
ENDED_STATES: Final = frozenset({ReleaseState.PROMOTED, ReleaseState.ABORTED, ReleaseState.ROLLED_BACK})
ACTIVE_STATES: Final = frozenset(ReleaseState) - ENDED_STATES

_OUT: Final = ENDED_STATES | {ReleaseState.PAUSED}
RELEASE_MOVES: Final[Mapping[ReleaseState, frozenset[ReleaseState]]] = {
    # Promoted from pending: a person with the permission skips every step.
    ReleaseState.PENDING: RUNNING_STATES | ENDED_STATES,
    ReleaseState.PREWARMING: _OUT | {ReleaseState.SHADOWING, ReleaseState.PROGRESSING},
    ReleaseState.SHADOWING: _OUT | {ReleaseState.PROGRESSING},
    ReleaseState.PROGRESSING: _OUT,
    ReleaseState.PAUSED: RUNNING_STATES | ENDED_STATES,
    ReleaseState.PROMOTED: frozenset({ReleaseState.ROLLED_BACK}),
    ReleaseState.ABORTED: frozenset(),
    ReleaseState.ROLLED_BACK: frozenset(),
}

STATE_OF_STEP: Final[Mapping[StepKind, ReleaseState]] = {
    StepKind.PREWARM: ReleaseState.PREWARMING,
    StepKind.EVALUATE: ReleaseState.PREWARMING,
    StepKind.SHADOW: ReleaseState.SHADOWING,
    StepKind.CANARY: ReleaseState.PROGRESSING,
    StepKind.PROMOTE: ReleaseState.PROGRESSING,
}

STEP_MOVES: Final[Mapping[StepState, frozenset[StepState]]] = {
    StepState.WAITING: frozenset({StepState.RUNNING, StepState.SKIPPED, StepState.ENDED}),
    # From running to running: another attempt.
    StepState.RUNNING: frozenset({StepState.RUNNING, StepState.PASSED, StepState.SKIPPED, StepState.ENDED}),
    StepState.PASSED: frozenset(),
    StepState.SKIPPED: frozenset(),
    StepState.ENDED: frozenset(),
}
