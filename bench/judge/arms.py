"""The judge's tests over many releases at once, and what one would write first: a test at each look as if it were one.

Ours calls the judge's own functions; counts are only divided by their dispersion where the test says anything without
that, as a division never adds evidence. ``tests/unit/bench/test_judge_arms.py`` compares with ``judge`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from releases.judge import dispersion
from releases.judge.binomial import Counts, log_harm, log_safety
from releases.judge.facts import CLASSES_PER_DOUBLING
from releases.judge.quantiles import scale_of, shift_of
from releases.judge.rates import whole_of
from releases.judge.tails import at_place, common_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bench.judge.world import Errors, Ids, Times
    from releases.judge.evidence import Floats
    from releases.judge.finding import Bars
    from releases.judge.settings import QuantileRule, RateRule

    Told = NDArray[np.bool_]

NAIVE_LEVEL = 0.05


def rates(
    world: Errors, ids: Ids, rule: RateRule, bars: Bars, *, is_early: bool, are_marks: bool = False
) -> tuple[Told, Told]:
    """Which releases fail, and which may pass, by shares; ``is_early``: none may."""
    slices = world.so_far(ids)
    whole = whole_of(slices)
    canary, stable = _share(whole.bad_canary, whole.of_canary), _share(whole.bad_stable, whole.of_stable)
    matters = np.maximum(rule.matters.absolute, rule.matters.relative * stable)
    margin = np.maximum(rule.margin.absolute, rule.margin.relative * stable)
    design = dispersion.of_marks if are_marks else dispersion.of_events

    def harm(counts: Counts, kept: Told) -> Floats:
        return log_harm(counts, 0.0, margin[kept])

    def safety(counts: Counts, kept: Told) -> Floats:
        return log_safety(counts, margin[kept], margin[kept])

    enough = np.minimum(whole.of_canary, whole.of_stable) >= rule.minimum
    worse = enough & (canary - stable >= matters)
    fails = _deflated(slices, worse, harm, bars.fail, design, is_worth_more=are_marks)
    if is_early:
        return fails, np.zeros_like(fails)
    passes = _deflated(slices, enough & ~fails, safety, bars.passing, design, is_worth_more=are_marks)
    return fails, passes if rule.is_needed else passes | ~worse


def quantiles(world: Times, ids: Ids, rule: QuantileRule, bars: Bars, *, is_early: bool) -> tuple[Told, Told]:
    """Which releases fail, and which may pass, by a quantile; ``is_early``: none may."""
    canary, stable = world.whole[0, ids], world.whole[1, ids]
    values = [_values(side, rule.quantile, world.lowest) for side in (canary, stable)]
    allowed = np.maximum(rule.margin.absolute, rule.margin.relative * values[1])
    shifts = shift_of(1 + allowed / values[1])
    enough = np.minimum(canary[:, 0], stable[:, 0]) >= rule.minimum
    gap = values[0] - values[1]
    worse = enough & (gap >= np.maximum(rule.matters.absolute, rule.matters.relative * values[1]))
    fails = _tails(world, ids, rule, worse, np.zeros_like(shifts), log_harm, bars.fail)
    if is_early:
        return fails, np.zeros_like(fails)
    passes = _tails(world, ids, rule, enough & ~fails, shifts, log_safety, bars.passing)
    return fails, passes if rule.is_needed else passes | ~worse


def z_test(world: Errors, ids: Ids) -> Told:
    """Two proportions, at each look."""
    whole = whole_of(world.so_far(ids))
    canary, stable = _share(whole.bad_canary, whole.of_canary), _share(whole.bad_stable, whole.of_stable)
    pooled = _share(whole.bad_canary + whole.bad_stable, whole.of_canary + whole.of_stable)
    variance = pooled * (1 - pooled) * (1 / np.maximum(whole.of_canary, 1) + 1 / np.maximum(whole.of_stable, 1))
    z = (canary - stable) / np.sqrt(np.maximum(variance, 1e-12))
    return np.asarray(2 * ndtr(-z) < NAIVE_LEVEL)


def mann_whitney(world: Times, ids: Ids) -> Told:
    """Ranks, at each look."""
    canary, stable = world.counts[0, ids], world.counts[1, ids]
    below = np.cumsum(stable, axis=-1) - stable / 2
    of_canary, of_stable = canary.sum(-1), stable.sum(-1)
    surplus = (canary * below).sum(-1) - of_canary * of_stable / 2
    variance = of_canary * of_stable * (of_canary + of_stable + 1) / 12
    return np.asarray(2 * ndtr(-surplus / np.sqrt(np.maximum(variance, 1e-12))) < NAIVE_LEVEL)


def _tails(
    world: Times,
    ids: Ids,
    rule: QuantileRule,
    asked: Told,
    shifts: Ids,
    test: Callable[[Counts, float, float], Floats],
    bar: float,
) -> Told:
    told = asked.copy()
    scale = scale_of(rule.quantile)
    if told.any():
        kept = np.flatnonzero(told)
        places = common_place(world.whole[0, ids[kept]], world.whole[1, ids[kept]], rule.quantile, shifts[kept])
        told[kept] = test(_whole_beyond(world, ids[kept], places + shifts[kept], places), 0.0, scale) >= bar
    if told.any():
        still = told[kept]
        kept, places = kept[still], places[still]
        slices = world.beyond(ids[kept], places + shifts[kept], places)
        worth = whole_of(slices).deflated(dispersion.of_events(slices))
        told[kept] = test(worth, 0.0, scale) >= bar
    return told


def _whole_beyond(world: Times, ids: Ids, canary: Ids, stable: Ids) -> Counts:
    last = world.whole.shape[-1] - 1
    sides = zip(world.whole, (canary, stable), strict=True)
    parts = [part for side, at in sides for part in (side[ids, np.clip(at, 0, last)], side[ids, 0])]
    return Counts(*parts)


def _deflated(
    slices: Counts,
    asked: Told,
    test: Callable[[Counts, Told], Floats],
    bar: float,
    design: Callable[[Counts], Floats],
    *,
    is_worth_more: bool,
) -> Told:
    told = asked.copy()
    if told.any() and not is_worth_more:
        told[told] = test(whole_of(_only(slices, told)), told) >= bar
    if told.any():
        some = _only(slices, told)
        told[told] = test(whole_of(some).deflated(design(some)), told) >= bar
    return told


def _only(slices: Counts, kept: Told) -> Counts:
    parts = (slices.bad_canary, slices.of_canary, slices.bad_stable, slices.of_stable)
    return Counts(*(part[kept] for part in parts))


def _share(bad: Floats, of: Floats) -> Floats:
    return np.asarray(bad / np.maximum(of, 1), dtype=np.float64)


def _values(beyond: Floats, quantile: float, lowest: int) -> Floats:
    """``tails.value_at`` of many."""
    wanted = (1 - quantile) * beyond[:, :1]
    place = np.maximum((beyond >= np.maximum(wanted, 1e-9)).sum(-1, keepdims=True) - 1, 0)
    above, here = at_place(beyond, place + 1), at_place(beyond, place)
    from_top = (wanted - above) / np.maximum(here - above, 1e-9)
    return np.asarray(2.0 ** ((lowest + place + 1 - from_top) / CLASSES_PER_DOUBLING))[:, 0]
