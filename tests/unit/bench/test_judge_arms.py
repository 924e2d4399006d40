"""What the bench simulates is what the judge says, release by release."""

import numpy as np
import pytest

from bench.judge import arms
from bench.judge.simulate import BARS, SETTINGS, run
from bench.judge.world import Case, Errors, Step, Times
from releases.judge.facts import Side, Sketch, Slice, Window
from releases.judge.judge import judge
from releases.judge.settings import JudgeSettings
from releases.judge.verdict import Metric, Outcome

RELEASES, SLICES = 8, 20
IDS = np.arange(RELEASES)
ASIDE = JudgeSettings(minimum_slices=SETTINGS.minimum_slices)


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("pattern", ["steady", "retries", "trouble"])
def test_shares_are_judged_as_the_judge_does(factor: float, pattern: str) -> None:
    case = Case(name="", factor=factor, pattern=pattern)
    world = Errors(np.random.default_rng(3), case, Step(0.5), RELEASES)
    for _slice in range(SLICES):
        world.draw(IDS)
    assert SETTINGS.errors is not None
    fails, passes = arms.rates(world, IDS, SETTINGS.errors, BARS, is_early=False)
    counts = world.so_far(IDS)
    for release in range(RELEASES):
        parts = zip(counts.bad_canary, counts.of_canary, counts.bad_stable, counts.of_stable, strict=True)
        numbers = [[int(value) for value in row] for row in np.transpose(list(parts)[release])]
        slices = tuple(
            Slice(canary=Side(errors=bad, requests=of), stable=Side(errors=bad_stable, requests=of_stable))
            for bad, of, bad_stable, of_stable in numbers
        )
        assert said(Window(slices=slices), Metric.ERRORS) is outcome(fails[release], passes[release])


@pytest.mark.parametrize("factor", [1.0, 1.1, 1.5])
@pytest.mark.parametrize("pattern", ["steady", "load"])
def test_quantiles_are_judged_as_the_judge_does(factor: float, pattern: str) -> None:
    case = Case(name="", factor=factor, pattern=pattern)
    world = Times(np.random.default_rng(3), case, Step(0.5), RELEASES)
    for _slice in range(SLICES):
        world.draw(IDS)
    assert SETTINGS.ttft is not None
    fails, passes = arms.quantiles(world, IDS, SETTINGS.ttft, BARS, is_early=False)
    for release in range(RELEASES):
        sides = [-np.diff(side[release]) for side in world.so_far(IDS)]
        slices = tuple(
            Slice(canary=Side(ttft=sketch(world, canary)), stable=Side(ttft=sketch(world, stable)))
            for canary, stable in zip(*sides, strict=True)
        )
        assert said(Window(slices=slices), Metric.TTFT) is outcome(fails[release], passes[release])


def test_a_release_ends_and_its_shares_are_all() -> None:
    tally = run(Case(name="", factor=100), ("errors",), releases=20, seed=1)
    assert (tally.rolled_back, tally.promoted, tally.held) == (1, 0, 0)
    assert tally.minutes == 1
    tally = run(Case(name="", requests_per_s=0.01), ("errors",), releases=20, seed=1)
    assert (tally.rolled_back, tally.promoted, tally.held, tally.minutes) == (0, 0, 1, None)


def sketch(world: Times, counts: np.ndarray) -> Sketch:
    return Sketch({world.lowest + place: int(count) for place, count in enumerate(counts) if count})


def said(window: Window, metric: Metric) -> Outcome:
    found = judge(window, ASIDE).of(metric)
    assert found is not None
    return found.outcome


def outcome(fails: bool, passes: bool) -> Outcome:
    if fails:
        return Outcome.FAIL
    return Outcome.PASS if passes else Outcome.INCONCLUSIVE
