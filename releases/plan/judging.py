"""How strictly a step is judged: from what a plan says to the judge's own settings.

Plans speak of percentage points where the judge has shares of 1; what a plan leaves out is the judge's default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from releases.judge.settings import Allowance, FloorRule, JudgeSettings, QuantileRule, RateRule
from releases.plan.steps import ShadowStep

if TYPE_CHECKING:
    from releases.plan.document import Difference, JudgedMetric, PlanDocument
    from releases.plan.steps import CanaryStep

_PERCENT: Final = 100.0
# Agreement counts as reached a little below its floor, so that what agrees exactly as much can pass.
_SLACK: Final = 0.05
_DEFAULTS: Final = JudgeSettings()
_Rule = TypeVar("_Rule", RateRule, QuantileRule)


def judge_settings(plan: PlanDocument, step: ShadowStep | CanaryStep) -> JudgeSettings:
    """The settings for one step of a release with that plan.

    Raises:
        ValueError: no judge can judge so: what matters is above its margin, or nothing is judged at all.

    """
    judging = plan.judge
    settings = JudgeSettings(
        false_alarm=judging.false_alarm,
        false_pass=judging.false_pass,
        steps=max(1, len(plan.canary) + (plan.shadow is not None)),
        errors=_rate(_DEFAULTS.errors, judging.errors, "errors"),
        ttft=_quantile(_DEFAULTS.ttft, judging.ttft, "ttft"),
        total=_quantile(_DEFAULTS.total, judging.total, "total"),
        quality=_rate(_DEFAULTS.quality, judging.quality, "quality"),
        cost=_quantile(_DEFAULTS.cost, judging.cost, "cost"),
        agreement=_floor(step),
    )
    return settings.for_shadow if isinstance(step, ShadowStep) else settings


def _rate(default: RateRule | None, written: JudgedMetric | None, name: str) -> RateRule | None:
    if written is not None and written.ceiling is not None:
        raise ValueError(f"judge.{name}.ceiling: there are ceilings for times and costs alone")
    return _rule(default, written, name, unit=_PERCENT, facts={})


def _quantile(default: QuantileRule | None, written: JudgedMetric | None, name: str) -> QuantileRule | None:
    facts = {} if written is None or written.ceiling is None else {"ceiling": written.ceiling}
    return _rule(default, written, name, unit=1.0, facts=facts)


def _rule(
    default: _Rule | None, written: JudgedMetric | None, name: str, *, unit: float, facts: dict[str, Any]
) -> _Rule | None:
    if default is None or written is None:
        return None
    try:
        for field in ("matters", "margin"):
            difference: Difference | None = getattr(written, field)
            if difference is not None:
                facts[field] = Allowance(difference.absolute / unit, difference.relative)
        for field in ("minimum", "is_needed"):
            value = getattr(written, field)
            if value is not None:
                facts[field] = value
        return replace(default, **facts)
    except ValueError as error:
        raise ValueError(f"judge.{name}: {error}") from error


def _floor(step: ShadowStep | CanaryStep) -> FloorRule | None:
    floor = step.agreement_floor if isinstance(step, ShadowStep) else None
    return None if floor is None else FloorRule(floor=floor, slack=min(_SLACK, floor / 2))
