"""A release at one moment, as far as the next change depends on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from releases.judge.verdict import Verdict
from releases.plan.steps import CanaryStep, EvaluateStep, PrewarmStep, ShadowStep
from releases.ports import Evaluation, Warmth
from releases.states import PauseKind, ReleaseState, StepKind, StepState

Spec = PrewarmStep | EvaluateStep | ShadowStep | CanaryStep
LIVE_STEPS = frozenset({StepKind.SHADOW, StepKind.CANARY})
_DONE = frozenset({StepState.PASSED, StepState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Judged:
    """A fresh verdict on a live step; ``samples`` are the candidate's requests in its window, None where unknown."""

    verdict: Verdict
    samples: int | None


Look = Warmth | Evaluation | Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step. ``spec`` is None for the last one, which promotes.

    ``started_at``: since when its requests are compared; ``waits_since``: since when its longest time counts, which is
    later where a person has let it go on.
    """

    index: int
    kind: StepKind
    state: StepState
    spec: Spec | None = None
    started_at: datetime | None = None
    waits_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``look`` is what was found out about the standing step just now; None: nothing new.

    ``stable_trouble`` and ``candidate_trouble`` say why that version may not answer any more; empty while it may.
    """

    state: ReleaseState
    steps: Sequence[StepView]
    pause: PauseKind | None = None
    look: Look | None = None
    stable_trouble: str = ""
    candidate_trouble: str = ""

    @property
    def running(self) -> StepView | None:
        return next((step for step in self.steps if step.state is StepState.RUNNING), None)

    @property
    def next(self) -> StepView | None:
        """The first step that isn't over, if none runs."""
        return next((step for step in self.steps if step.state not in _DONE), None)

    @property
    def standing(self) -> StepView | None:
        """The step that requests are split by now: the one that runs, or else the last one that is over."""
        over = [step for step in self.steps if step.state is StepState.PASSED]
        return self.running or (over[-1] if over else None)
