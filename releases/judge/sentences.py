"""Findings in words, with their numbers and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from releases.judge.finding import Reason
from releases.judge.verdict import Metric, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releases.judge.finding import Finding
    from releases.judge.settings import FloorRule, JudgeSettings, QuantileRule, RateRule
    from releases.judge.verdict import Interval, MetricVerdict

    Rule = RateRule | QuantileRule | FloorRule


@dataclass(frozen=True, slots=True)
class Words:
    """``name`` as the beginning of a sentence, ``noun`` what was counted; numbers are multiplied by ``factor``."""

    name: str
    noun: str
    unit: str
    difference_unit: str
    factor: float = 1.0

    def number(self, value: float) -> str:
        return f"{_short(value * self.factor)} {self.unit}"

    def difference(self, value: float) -> str:
        return f"{_short(value * self.factor)} {self.difference_unit}"

    def interval(self, interval: Interval | None) -> str:
        if interval is None or (interval.low is None and interval.high is None):
            return "anything is possible yet"
        if interval.low is None:
            return f"at most {self.difference(interval.high or 0.0)} more"
        if interval.high is None:
            return f"at least {self.difference(interval.low)} more"
        return f"between {_short(interval.low * self.factor)} and {self.difference(interval.high)} more"


def sentence_of(finding: Finding, words: Words, rule: Rule, settings: JudgeSettings) -> str:
    """What came of a metric and why."""
    counted = f"{finding.canary_count} {words.noun} of the canary and {finding.stable_count} of the stable version"
    if finding.reason is Reason.NO_DATA:
        return f"{words.name}: no data ({counted})."
    if finding.reason is Reason.TOO_FEW:
        return f"{words.name}: too few yet, {counted} of {rule.minimum} needed on each side."
    if finding.reason is Reason.TOO_FEW_SLICES:
        return f"{words.name}: fewer than {settings.minimum_slices} slices of time yet in which both sides have data."
    return f"{words.name}: {_values(finding, words)}; {_why(finding, words, rule)}."


def tested_of(words: Words, finding: Finding, settings: JudgeSettings) -> str:
    """What was asked, of which numbers, and how sure an answer has to be."""
    sure = f"fails at most {settings.false_alarm_per_test:.3%} of equal versions, at however many looks"
    sure = f"{sure}; passes at most {settings.false_pass:.0%} of what is worse by the margin"
    bursts = f"; {finding.dispersion:.1f} {words.noun} count as one, as they come in bursts"
    return f"mixture sequential test, {sure}{bursts if finding.dispersion > 1.05 else ''}"  # noqa: PLR2004


def whole_of(outcome: Outcome, metrics: Sequence[MetricVerdict]) -> str:
    """The sentence of the whole: why it failed, or what it waits for, or that nothing is worse."""
    if outcome is Outcome.FAIL:
        failed = [found.sentence for found in metrics if found.outcome is Outcome.FAIL]
        return f"The canary is worse than the stable version. {' '.join(failed)}"
    if outcome is Outcome.INCONCLUSIVE:
        open_ = [found.sentence for found in metrics if found.holds]
        return f"It can't be told yet. {' '.join(open_)}" if open_ else "It can't be told: no metric has passed yet."
    passed = [found.sentence for found in metrics if found.outcome is Outcome.PASS]
    return f"The canary is no worse than the stable version. {' '.join(passed)}"


def _values(finding: Finding, words: Words) -> str:
    canary = words.number(finding.canary or 0.0)
    if finding.stable is None:
        return f"{canary} of {finding.canary_count} {words.noun}"
    return (
        f"{canary} of {finding.canary_count} {words.noun} against {words.number(finding.stable)} of "
        f"{finding.stable_count}, {words.interval(finding.interval)}"
    )


def _why(finding: Finding, words: Words, rule: Rule) -> str:
    match finding.reason:
        case Reason.HARM:
            return f"certainly {_bound(words, rule, finding, is_fail=True)}"
        case Reason.NO_HARM:
            return f"certainly not {_bound(words, rule, finding, is_fail=False)}"
        case Reason.OVER_CEILING:
            return f"certainly over the ceiling of {_ceiling(words, rule)}"
        case Reason.BOTH_OVER_CEILING:
            return f"both are over the ceiling of {_ceiling(words, rule)}, so that going back would not help"
        case Reason.MAYBE_OVER_CEILING:
            return f"above the ceiling of {_ceiling(words, rule)} as it looks"
        case _:
            return f"not certain yet that it is not {_bound(words, rule, finding, is_fail=False)}"


def _bound(words: Words, rule: Rule, finding: Finding, *, is_fail: bool) -> str:
    margin = finding.margin or 0.0
    floor = getattr(rule, "floor", None)
    if floor is not None:
        return f"below {words.number(floor if is_fail else floor - margin)}"
    if is_fail:
        return f"worse, and by {words.difference(finding.matters or 0.0)} or more as it looks"
    return f"worse by {words.difference(margin)}"


def _ceiling(words: Words, rule: Rule) -> str:
    return words.number(getattr(rule, "ceiling", None) or 0.0)


def _short(value: float) -> str:
    """Three digits, and none that say nothing."""
    if abs(value) >= 1000:  # noqa: PLR2004  from here on tenths say nothing
        return f"{value:.0f}"
    return f"{value:.3g}"


def words_for(metric: Metric, *, quantile: float, cost_unit: str) -> Words:
    name = f"p{quantile * 100:g}"
    return {
        Metric.ERRORS: Words("Errors", "requests", "%", "percentage points", 100),
        Metric.TTFT: Words(f"Time to the first token, {name}", "answers", "ms", "ms"),
        Metric.TOTAL: Words(f"Time of an answer, {name}", "answers", "ms", "ms"),
        Metric.COST: Words(f"Cost of an answer, {name}", "answers", cost_unit, cost_unit),
        Metric.QUALITY: Words("What marks lack to the best", "marks", "%", "percentage points", 100),
        Metric.AGREEMENT: Words("Agreement with the stable version", "mirrored answers", "%", "percentage points", 100),
    }[metric]
