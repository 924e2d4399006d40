"""``judge(window, settings)``: the verdict on one step of a release.

A fail takes evidence of harm in one metric, a pass evidence in every metric that is needed that harm is below its
margin; everything else is inconclusive, no data above all. A fail or a pass may be acted on at the look that gives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from releases.judge import sentences
from releases.judge.binomial import Counts
from releases.judge.floors import find_floor
from releases.judge.quantiles import Tails, find_quantiles
from releases.judge.rates import find_rates
from releases.judge.settings import JudgeSettings, QuantileRule
from releases.judge.verdict import Interval, Metric, MetricVerdict, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from releases.judge.evidence import Floats
    from releases.judge.facts import Side, Sketch, Slice, Window
    from releases.judge.finding import Finding
    from releases.judge.sentences import Rule

_SKETCHES: dict[Metric, Callable[[Side], Sketch]] = {
    Metric.TTFT: lambda side: side.ttft,
    Metric.TOTAL: lambda side: side.total,
    Metric.COST: lambda side: side.cost,
}


def judge(window: Window, settings: JudgeSettings | None = None) -> Verdict:
    """The verdict on the window's canary against its stable version, by the default settings if there are no others."""
    settings = settings or JudgeSettings()
    metrics = tuple(_of(window, settings))
    outcome = _together(metrics)
    return Verdict(outcome=outcome, sentence=sentences.whole_of(outcome, metrics), metrics=metrics)


def _of(window: Window, settings: JudgeSettings) -> Iterator[MetricVerdict]:
    slices = window.slices
    if settings.errors is not None:
        found = find_rates(_errors(slices), settings.errors, settings, are_marks=False)
        yield _said(Metric.ERRORS, found, settings.errors, settings, window)
    for metric, rule in ((Metric.TTFT, settings.ttft), (Metric.TOTAL, settings.total), (Metric.COST, settings.cost)):
        if rule is not None:
            pick = _SKETCHES[metric]
            tails = Tails.of([pick(part.canary) for part in slices], [pick(part.stable) for part in slices])
            yield _said(metric, find_quantiles(tails, rule, settings), rule, settings, window)
    if settings.quality is not None:
        found = find_rates(_marks(slices), settings.quality, settings, are_marks=True)
        yield _said(Metric.QUALITY, found, settings.quality, settings, window)
    if settings.agreement is not None:
        of = _array([part.agreement.count for part in slices])
        found = find_floor(of - _array([part.agreement.sum for part in slices]), of, settings.agreement, settings)
        yield _said(Metric.AGREEMENT, found, settings.agreement, settings, window)


def _together(metrics: tuple[MetricVerdict, ...]) -> Outcome:
    if any(found.outcome is Outcome.FAIL for found in metrics):
        return Outcome.FAIL
    is_any = any(found.outcome is Outcome.PASS for found in metrics)
    return Outcome.PASS if is_any and not any(found.holds for found in metrics) else Outcome.INCONCLUSIVE


def _errors(slices: tuple[Slice, ...]) -> Counts:
    return Counts(
        _array([part.canary.errors for part in slices]),
        _array([part.canary.requests for part in slices]),
        _array([part.stable.errors for part in slices]),
        _array([part.stable.requests for part in slices]),
    )


def _marks(slices: tuple[Slice, ...]) -> Counts:
    canary, stable = [part.canary.quality for part in slices], [part.stable.quality for part in slices]
    return Counts(
        _array([marks.count - marks.sum for marks in canary]),
        _array([marks.count for marks in canary]),
        _array([marks.count - marks.sum for marks in stable]),
        _array([marks.count for marks in stable]),
    )


def _array(values: list[int] | list[float]) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _said(metric: Metric, found: Finding, rule: Rule, settings: JudgeSettings, window: Window) -> MetricVerdict:
    quantile = rule.quantile if isinstance(rule, QuantileRule) else 0.0
    words = sentences.words_for(metric, quantile=quantile, cost_unit=window.cost_unit)
    gap = None if found.canary is None or found.stable is None else found.canary - found.stable
    return MetricVerdict(
        metric=metric,
        outcome=found.reason.outcome,
        sentence=sentences.sentence_of(found, words, rule, settings),
        tested=sentences.tested_of(words, found, settings),
        unit=words.unit,
        holds=found.holds(is_needed=rule.is_needed),
        canary=_times(found.canary, words.factor),
        stable=_times(found.stable, words.factor),
        difference=_times(gap, words.factor),
        interval=None if found.interval is None else _scaled(found.interval, words.factor),
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(low=_times(interval.low, factor), high=_times(interval.high, factor))
