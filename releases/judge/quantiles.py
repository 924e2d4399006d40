"""A quantile of a measure, canary against stable and against a ceiling: times and costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from releases.judge import dispersion
from releases.judge.binomial import Counts, log_above, log_harm, log_safety
from releases.judge.facts import CLASSES_PER_DOUBLING, class_of
from releases.judge.finding import Bars, Finding, Reason, shortage
from releases.judge.rates import whole_of
from releases.judge.tails import at_place, beyond_of, common_place, value_at
from releases.judge.verdict import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from releases.judge.evidence import Floats
    from releases.judge.facts import Sketch
    from releases.judge.settings import JudgeSettings, QuantileRule
    from releases.judge.tails import Places

# Half of the observations are no tail: where the quantile is in the middle, the share that matters is a tenth.
_MOST = 0.1


@dataclass(frozen=True, slots=True)
class Tails:
    """``beyond`` arrays of both sides with an axis of slices before the last, and the class that they begin with."""

    canary: Floats
    stable: Floats
    lowest: int

    @classmethod
    def of(cls, canary: Sequence[Sketch], stable: Sequence[Sketch]) -> Tails:
        classes = [index for sketch in (*canary, *stable) for index in sketch.counts]
        lowest, width = min(classes, default=0), max(classes, default=0) - min(classes, default=0) + 1
        return cls(beyond_of(_dense(canary, lowest, width)), beyond_of(_dense(stable, lowest, width)), lowest)


def _dense(sketches: Sequence[Sketch], lowest: int, width: int) -> Floats:
    counts = np.zeros((len(sketches), width))
    for row, sketch in enumerate(sketches):
        for index, count in sketch.counts.items():
            counts[row, index - lowest] += count
    return counts


def find_quantiles(tails: Tails, rule: QuantileRule, settings: JudgeSettings) -> Finding:
    canary, stable = tails.canary.sum(0), tails.stable.sum(0)
    counts = (int(canary[0]), int(stable[0]))
    both = int(((tails.canary[:, 0] > 0) & (tails.stable[:, 0] > 0)).sum())
    short = shortage(counts, both, minimum=rule.minimum, minimum_slices=settings.minimum_slices)
    if short is Reason.NO_DATA:
        return Finding(reason=short, canary_count=counts[0], stable_count=counts[1])
    values = (value_at(canary, rule.quantile, tails.lowest), value_at(stable, rule.quantile, tails.lowest))
    bars, matters = Bars.of(settings), rule.matters.of(values[1])
    return Finding(
        reason=short or _over_ceiling(tails, rule, bars, values) or _reason(tails, rule, bars, values),
        canary_count=counts[0],
        stable_count=counts[1],
        canary=values[0],
        stable=values[1],
        interval=None if short else _interval(tails, rule, bars, values[1]),
        matters=matters,
        margin=rule.margin.of(values[1]),
        dispersion=float(dispersion.of_events(counts_beyond(tails.canary, tails.stable, rule.quantile, 0))),
        looks_worse=values[0] - values[1] >= matters,
    )


def counts_beyond(canary: Floats, stable: Floats, quantile: float, shift: Places | int) -> Counts:
    """Who lies beyond the quantile of both, by slice; the canary's values divided by ``2^(shift/16)``."""
    place = common_place(canary.sum(-2), stable.sum(-2), quantile, shift)
    shifted = place + np.asarray(shift, dtype=np.int64)
    return Counts(_column(canary, shifted), canary[..., 0], _column(stable, place), stable[..., 0])


def shift_of(ratio: Floats | float) -> Places:
    """Whole classes that are no more than ``ratio``."""
    return np.asarray(np.floor(np.log2(ratio) * CLASSES_PER_DOUBLING + 1e-9), dtype=np.int64)


def scale_of(quantile: float) -> float:
    """The difference of shares beyond a quantile that the test is best at: twice as many as there should be."""
    return min(1 - quantile, _MOST)


def _column(beyond: Floats, places: Places) -> Floats:
    wide = np.broadcast_to(places[..., np.newaxis, np.newaxis], (*beyond.shape[:-1], 1))
    return at_place(beyond, wide)[..., 0]


def _reason(tails: Tails, rule: QuantileRule, bars: Bars, values: tuple[float, float]) -> Reason:
    canary, stable = values
    if canary - stable >= rule.matters.of(stable) and _harm(tails, rule, 0) >= bars.fail:
        return Reason.HARM
    allowed = int(shift_of(1 + rule.margin.of(stable) / stable))
    if _safety(tails, rule, allowed) < bars.passing:
        return Reason.OPEN
    return Reason.NO_HARM if rule.ceiling is None or canary <= rule.ceiling else Reason.MAYBE_OVER_CEILING


def _over_ceiling(tails: Tails, rule: QuantileRule, bars: Bars, values: tuple[float, float]) -> Reason | None:
    """A ceiling that stable is over, too, is no ground for going back to stable."""
    if rule.ceiling is None or values[0] <= rule.ceiling:
        return None
    place = min(max(class_of(rule.ceiling) + 1 - tails.lowest, 0), tails.canary.shape[-1] - 1)
    over, of = tails.canary[:, place], tails.canary[:, 0]
    design = dispersion.of_events_alone(over, of)
    certain = log_above(over.sum() / design, of.sum() / design, 1 - rule.quantile, scale_of(rule.quantile))
    if certain < bars.fail:
        return None
    return Reason.OVER_CEILING if values[1] <= rule.ceiling else Reason.BOTH_OVER_CEILING


def _harm(tails: Tails, rule: QuantileRule, shift: int) -> float:
    slices = counts_beyond(tails.canary, tails.stable, rule.quantile, shift)
    worth = whole_of(slices).deflated(dispersion.of_events(slices))
    return float(log_harm(worth, 0.0, scale_of(rule.quantile)))


def _safety(tails: Tails, rule: QuantileRule, shift: int) -> float:
    slices = counts_beyond(tails.canary, tails.stable, rule.quantile, shift)
    worth = whole_of(slices).deflated(dispersion.of_events(slices))
    return float(log_safety(worth, 0.0, scale_of(rule.quantile)))


def _interval(tails: Tails, rule: QuantileRule, bars: Bars, stable: float) -> Interval:
    """The differences, as ratios of whole classes, that neither test rules out."""
    widest = tails.canary.shape[-1]
    low = _last(lambda shift: _harm(tails, rule, shift) >= bars.fail, widest)
    high = _last(lambda shift: _safety(tails, rule, -shift) >= bars.passing, widest)
    return Interval(
        low=None if low is None else stable * (_ratio(low) - 1),
        high=None if high is None else stable * (_ratio(-high) - 1),
    )


def _ratio(shift: int) -> float:
    return math.exp2(shift / CLASSES_PER_DOUBLING)


def _last(holds: Callable[[int], bool], widest: int) -> int | None:
    """The largest shift up to which it holds, by halving."""
    low, high = -widest, widest
    if not holds(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
