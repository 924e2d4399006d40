"""Shares of bad ones, canary against stable: errors, and what marks lack to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from releases.judge import dispersion
from releases.judge.binomial import Counts, log_harm, log_safety
from releases.judge.finding import Bars, Finding, Reason, shortage
from releases.judge.verdict import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from releases.judge.evidence import Floats
    from releases.judge.settings import JudgeSettings, RateRule

_GRID, _ROUNDS = 33, 5
_WIDEST = 0.9999


def find_rates(slices: Counts, rule: RateRule, settings: JudgeSettings, *, are_marks: bool) -> Finding:
    """``slices``: one-dimensional arrays."""
    whole = whole_of(slices)
    counts = (round(float(whole.of_canary)), round(float(whole.of_stable)))
    both = int(((slices.of_canary > 0) & (slices.of_stable > 0)).sum())
    short = shortage(counts, both, minimum=rule.minimum, minimum_slices=settings.minimum_slices)
    if short is Reason.NO_DATA:
        return Finding(reason=short, canary_count=counts[0], stable_count=counts[1])
    canary, stable = float(whole.bad_canary / whole.of_canary), float(whole.bad_stable / whole.of_stable)
    design = (dispersion.of_marks if are_marks else dispersion.of_events)(slices)
    worth, bars = whole.deflated(design), Bars.of(settings)
    matters, margin = rule.matters.of(stable), min(rule.margin.of(stable), _WIDEST)
    return Finding(
        reason=short or _reason(worth, bars, gap=canary - stable, matters=matters, margin=margin),
        canary_count=counts[0],
        stable_count=counts[1],
        canary=canary,
        stable=stable,
        interval=None if short else _interval(worth, bars, margin),
        matters=matters,
        margin=margin,
        dispersion=float(design),
        looks_worse=canary - stable >= matters,
    )


def whole_of(slices: Counts) -> Counts:
    parts = (slices.bad_canary, slices.of_canary, slices.bad_stable, slices.of_stable)
    return Counts(*(np.asarray(part.sum(-1), dtype=np.float64) for part in parts))


def _reason(worth: Counts, bars: Bars, *, gap: float, matters: float, margin: float) -> Reason:
    if gap >= matters and log_harm(worth, 0.0, margin) >= bars.fail:
        return Reason.HARM
    return Reason.NO_HARM if log_safety(worth, margin, margin) >= bars.passing else Reason.OPEN


def _interval(worth: Counts, bars: Bars, margin: float) -> Interval:
    """The differences of shares that neither test rules out."""
    low = _last(lambda gaps: log_harm(_spread_out(worth, gaps), gaps, margin) >= bars.fail)
    high = _last(lambda gaps: log_safety(_spread_out(worth, -gaps), -gaps, margin) >= bars.passing)
    return Interval(low=low, high=None if high is None else -high)


def _spread_out(worth: Counts, over: Floats) -> Counts:
    parts = (worth.bad_canary, worth.of_canary, worth.bad_stable, worth.of_stable)
    return Counts(*(np.broadcast_to(part, over.shape) for part in parts))


def _last(holds: Callable[[Floats], NDArray[np.bool_]]) -> float | None:
    """The largest number up to which it holds, from nearly -1 on; by ever finer grids."""
    low, high = -_WIDEST, _WIDEST
    for _round in range(_ROUNDS):
        grid = np.linspace(low, high, _GRID)
        held = int(np.cumprod(holds(grid)).sum())
        if held == 0:
            return None
        low, high = float(grid[held - 1]), float(grid[min(held, _GRID - 1)])
    return low
