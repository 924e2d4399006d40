"""The plan of a release: its steps and how strictly each is judged, as a template writes it (YAML).

Every section and key has a default: an empty template is a careful release. Times are in minutes, shares in percent.
"""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from registry.documents.values import Count, Positive, Section
from releases.plan.judging import judge_settings
from releases.plan.steps import CanaryStep, EvaluateStep, Minutes, PrewarmStep, ShadowStep

MOST_STEPS: Final = 20


class Difference(Section):
    """The larger of both counts: an absolute one, and a share of what the stable version has (0.25: a quarter more).

    ``absolute`` is in percentage points of errors and quality, in ms of times, and in the unit of costs.
    """

    absolute: Annotated[float, Field(ge=0)] = 0.0
    relative: Annotated[float, Field(ge=0)] = 0.0


class JudgedMetric(Section):
    """How much worse is worse; see ``docs/releases-judge.md``. What isn't written is the judge's own default.

    ``matters``: a fail takes at least that. ``margin``: a pass rules that out. ``ceiling``: whatever stable has, the
    candidate may not be above (times and costs alone).
    """

    matters: Difference | None = None
    margin: Difference | None = None
    minimum: Count | None = None
    ceiling: Positive | None = None
    is_needed: bool | None = None


class Judging(Section):
    """``null`` for a metric: that isn't judged. ``slice_s`` is how finely the window of a step is cut, in seconds."""

    errors: JudgedMetric | None = JudgedMetric()
    ttft: JudgedMetric | None = JudgedMetric()
    total: JudgedMetric | None = JudgedMetric()
    quality: JudgedMetric | None = JudgedMetric()
    cost: JudgedMetric | None = JudgedMetric()
    false_alarm: Annotated[float, Field(gt=0, le=0.2)] = 0.01
    false_pass: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    slice_s: Annotated[float, Field(ge=1, le=60)] = 20.0


def _usual_canary() -> tuple[CanaryStep, ...]:
    return CanaryStep(percent=10.0, min_minutes=10.0), CanaryStep(percent=50.0, min_minutes=10.0)


class PlanDocument(Section):
    """All of a plan. ``shadow: null`` and an empty ``canary`` leave those steps out.

    ``approvals``: people other than who made the release, before it may start. ``keep_stable_warm_minutes``: after the
    promotion the version that was left stays loaded for so long.
    """

    prewarm: PrewarmStep = PrewarmStep()
    evaluate: EvaluateStep = EvaluateStep()
    shadow: ShadowStep | None = ShadowStep()
    canary: Annotated[tuple[CanaryStep, ...], Field(max_length=MOST_STEPS)] = Field(default_factory=_usual_canary)
    approvals: Annotated[int, Field(ge=0, le=10)] = 1
    keep_stable_warm_minutes: Minutes = 60.0
    judge: Judging = Judging()

    @model_validator(mode="after")
    def _only_grows(self) -> Self:
        """Invariant 5: a key that has had the candidate keeps it."""
        given: frozenset[str] = frozenset()
        percent = 0.0
        for number, step in enumerate(self.canary, 1):
            if step.percent < percent or not given <= set(step.tenants):
                raise ValueError(
                    f"canary step {number} takes the candidate away from some who have it: steps only grow"
                )
            given, percent = frozenset(step.tenants), step.percent
        return self

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        judged: list[ShadowStep | CanaryStep] = [*self.canary]
        if self.shadow is not None:
            judged.append(self.shadow)
        for step in judged:
            judge_settings(self, step)
        return self
