"""A mean of marks against a number that it has to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releases.judge import dispersion
from releases.judge.binomial import log_above, log_below
from releases.judge.finding import Bars, Finding, Reason, shortage

if TYPE_CHECKING:
    from releases.judge.evidence import Floats
    from releases.judge.settings import FloorRule, JudgeSettings


def find_floor(bad: Floats, of: Floats, rule: FloorRule, settings: JudgeSettings) -> Finding:
    """``bad``: what each slice's marks lack to 1. The finding's ``canary`` is the mean mark, ``margin`` the slack."""
    count = round(float(of.sum()))
    short = shortage((count, count), int((of > 0).sum()), minimum=rule.minimum, minimum_slices=settings.minimum_slices)
    if short is Reason.NO_DATA:
        return Finding(reason=short, canary_count=0, stable_count=0)
    design = float(dispersion.of_marks_alone(bad, of))
    mean = 1 - float(bad.sum()) / count
    return Finding(
        reason=short or _reason(bad.sum() / design, of.sum() / design, rule, Bars.of(settings)),
        canary_count=count,
        stable_count=count,
        canary=mean,
        margin=rule.slack,
        dispersion=design,
        looks_worse=mean < rule.floor,
    )


def _reason(bad: Floats, of: Floats, rule: FloorRule, bars: Bars) -> Reason:
    if log_above(bad, of, 1 - rule.floor, rule.slack) >= bars.fail:
        return Reason.HARM
    is_reached = log_below(bad, of, 1 - rule.floor + rule.slack, rule.slack) >= bars.passing
    return Reason.NO_HARM if is_reached else Reason.OPEN
