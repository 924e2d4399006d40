"""The parts of the method: e-values, likeliest shares, dispersion, tails."""

import math

import numpy as np
import pytest

from releases.judge import dispersion
from releases.judge.binomial import Counts, log_above, log_below, log_harm, log_safety
from releases.judge.evidence import log_bar, log_evidence
from releases.judge.facts import CLASS_MAX, CLASS_MIN, Sketch, class_of
from releases.judge.quantiles import Tails, counts_beyond, shift_of
from releases.judge.rates import whole_of
from releases.judge.tails import value_at


def counts(bad_canary: float, of_canary: float, bad_stable: float, of_stable: float) -> Counts:
    return Counts(*(np.asarray(value, dtype=np.float64) for value in (bad_canary, of_canary, bad_stable, of_stable)))


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0, 30.0])
def test_an_e_value_is_one_on_average_where_the_hypothesis_holds(spread: float) -> None:
    root = np.linspace(-12, 12 + 20 / spread, 200_001)
    log_density = -(root**2) / 2 - math.log(2 * math.pi) / 2
    values = np.exp(log_evidence(root, np.full_like(root, spread), 1.0) + log_density)
    assert np.trapezoid(values, root) == pytest.approx(1, abs=0.01)


def test_an_e_value_reaches_its_bar_at_no_look_more_often_than_it_may() -> None:
    rng = np.random.default_rng(1)
    sums = np.cumsum(rng.standard_normal((2_000, 500)), axis=1)
    looks = np.arange(1, 501)
    evidence = log_evidence(sums / np.sqrt(looks), np.broadcast_to(1 / np.sqrt(looks), sums.shape), 0.2)
    assert (evidence.max(axis=1) >= log_bar(0.05)).mean() <= 0.05


def test_nothing_seen_is_no_evidence() -> None:
    nothing = counts(0, 0, 0, 0)
    assert log_harm(nothing, 0.0, 0.01) <= 0
    assert log_safety(nothing, 0.01, 0.01) <= 1e-6


@pytest.mark.parametrize(
    ("bad_canary", "bad_stable", "by"), [(30, 20, 0.01), (0, 0, 0.02), (5, 40, 0.1), (400, 3, 0.3)]
)
def test_the_likeliest_shares_are_the_likeliest(bad_canary: int, bad_stable: int, by: float) -> None:
    """The evidence goes by the distance to the nearest pair of shares that the hypothesis allows."""
    grid = np.linspace(1e-6, 1 - by - 1e-6, 400_001)
    canary = min(bad_canary + 0.5, 500.0)
    likelihood = canary * np.log(grid + by) + (500 - canary) * np.log1p(-grid - by)
    likelihood += bad_stable * np.log(grid) + (900 - bad_stable) * np.log1p(-grid)
    stable = float(grid[np.argmax(likelihood)])
    spread = np.sqrt((stable + by) * (1 - stable - by) / 500 + max(stable, 0.5 / 900) * (1 - stable) / 900)
    best = canary * math.log(canary / 500) + (500 - canary) * math.log1p(-canary / 500)
    best += (
        900 * math.log1p(-bad_stable / 900)
        if not bad_stable
        else (bad_stable * math.log(bad_stable / 900) + (900 - bad_stable) * math.log1p(-bad_stable / 900))
    )
    sign = np.sign(by - canary / 500 + bad_stable / 900)
    root = sign * math.sqrt(2 * (best - float(likelihood.max())))
    expected = log_evidence(np.asarray(root), np.asarray(spread), 0.05)
    assert log_safety(counts(bad_canary, 500, bad_stable, 900), by, 0.05) == pytest.approx(float(expected), abs=0.01)


def test_more_bad_ones_are_more_evidence_of_harm_and_less_of_safety() -> None:
    bad = np.arange(0, 301.0)
    many = Counts(bad, np.full_like(bad, 300), np.full_like(bad, 3), np.full_like(bad, 300))
    assert (np.diff(log_harm(many, 0.0, 0.01))[3:] >= -1e-9).all()
    assert (np.diff(log_safety(many, 0.01, 0.01)) <= 1e-9).all()
    assert (np.diff(log_above(bad, np.full_like(bad, 300), 0.05, 0.05))[16:] >= -1e-9).all()
    assert (np.diff(log_below(bad, np.full_like(bad, 300), 0.05, 0.05)) <= 1e-9).all()


def test_single_events_are_worth_one_and_bursts_less() -> None:
    rng = np.random.default_rng(2)
    of = np.full((200, 60), 100.0)
    single = Counts(
        rng.binomial(100, 0.05, of.shape).astype(np.float64),
        of,
        rng.binomial(100, 0.05, of.shape).astype(np.float64),
        of,
    )
    assert float(np.mean(dispersion.of_events(single))) == pytest.approx(1, abs=0.15)
    tenfold = Counts(
        np.where(rng.random(of.shape) < 0.05, 10.0, 0), of, np.where(rng.random(of.shape) < 0.05, 10.0, 0), of
    )
    assert float(np.mean(dispersion.of_events(tenfold))) > 5


def test_a_lasting_difference_is_no_burst() -> None:
    of = np.full(60, 100.0)
    bad = np.tile([4.0, 6.0], 30)
    assert dispersion.of_events(Counts(bad + 30, of, bad, of)) == 1


def test_marks_that_differ_little_are_worth_more() -> None:
    of = np.full(60, 10.0)
    bad = 2 + np.tile([0.01, -0.01], 30)
    assert dispersion.of_marks(Counts(bad, of, bad[::-1], of)) < 0.2
    assert dispersion.of_marks_alone(bad, of) < 0.2
    assert dispersion.of_marks(Counts(bad[:2], of[:2], bad[:2], of[:2])) > 0.7


@pytest.mark.parametrize("value", [1.0, 1.01, 99.0, 100.0, 12_345.6])
def test_a_class_is_no_further_off_than_it_is_wide(value: float) -> None:
    low = 2 ** (class_of(value) / 16)
    assert low * (1 - 1e-9) < value <= low * 2 ** (1 / 16) * (1 + 1e-9)


def test_values_outside_count_as_the_nearest() -> None:
    assert [class_of(value) for value in (0.0, -1.0, 1e-30, 1e30)] == [CLASS_MIN, CLASS_MIN, CLASS_MIN, CLASS_MAX]


@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_quantiles_of_sketches_are_near_those_of_samples(quantile: float) -> None:
    samples = 100 * np.exp(0.5 * np.random.default_rng(3).standard_normal(20_000))
    tails = Tails.of([Sketch.of(samples)], [Sketch.of(samples)])
    expected = float(np.quantile(samples, quantile))
    assert value_at(tails.canary[0], quantile, tails.lowest) == pytest.approx(expected, rel=0.02)


def test_the_slowest_are_counted_on_both_sides_after_a_shift() -> None:
    rng = np.random.default_rng(4)
    fast, slow = (Sketch.of(scale * np.exp(0.5 * rng.standard_normal(10_000))) for scale in (100, 200))
    tails = Tails.of([slow], [fast])
    same = whole_of(counts_beyond(tails.canary, tails.stable, 0.95, int(shift_of(2.0))))
    assert float(same.bad_canary) == pytest.approx(float(same.bad_stable), rel=0.15)
    assert float(same.bad_canary) == pytest.approx(500, rel=0.25)
    unshifted = whole_of(counts_beyond(tails.canary, tails.stable, 0.95, 0))
    assert float(unshifted.bad_canary) > 10 * float(unshifted.bad_stable)


def test_values_that_are_all_the_same_can_be_compared() -> None:
    tails = Tails.of([Sketch({10: 100})], [Sketch({10: 900})])
    shifted = whole_of(counts_beyond(tails.canary, tails.stable, 0.95, 5))
    assert (float(shifted.bad_canary), float(shifted.bad_stable)) == (0, 900)
