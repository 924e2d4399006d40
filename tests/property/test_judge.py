"""Whatever the facts: the judge's numbers are numbers, and more harm is never a better verdict."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from releases.judge.facts import CLASS_MAX, Marks, Side, Sketch, Slice, Window
from releases.judge.judge import judge
from releases.judge.settings import FloorRule, JudgeSettings, QuantileRule
from releases.judge.verdict import Outcome, Verdict

EVERYTHING = JudgeSettings(agreement=FloorRule(floor=0.6))
ERRORS_ALONE = JudgeSettings(ttft=None, total=None, cost=None, quality=None)
TTFT_ALONE = JudgeSettings(errors=None, total=None, cost=None, quality=None)
# From the best to the worst.
ORDER = [Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL]

CLASSES = st.one_of(st.integers(80, 130), st.integers(-480, 480))
SKETCHES = st.builds(Sketch, st.dictionaries(CLASSES, st.integers(0, 400), max_size=6))


@st.composite
def marks(draw: st.DrawFn) -> Marks:
    count = draw(st.integers(0, 300))
    return Marks(count, count * draw(st.floats(0, 1)))


@st.composite
def sides(draw: st.DrawFn) -> Side:
    requests = draw(st.integers(0, 1000))
    return Side(
        requests=requests,
        errors=draw(st.integers(0, requests)),
        ttft=draw(SKETCHES),
        total=draw(SKETCHES),
        cost=draw(SKETCHES),
        quality=draw(marks()),
    )


SLICES = st.builds(Slice, canary=sides(), stable=sides(), agreement=marks())
WINDOWS = st.builds(Window, slices=st.lists(SLICES, max_size=6).map(tuple))


@st.composite
def steady(draw: st.DrawFn) -> tuple[Slice, int]:
    """Errors that come evenly, and in how many slices."""
    canary, stable = (draw(st.integers(1, 2000)) for _side in range(2))
    return (
        Slice(
            canary=Side(requests=canary, errors=draw(st.integers(0, canary))),
            stable=Side(requests=stable, errors=draw(st.integers(0, stable))),
        ),
        draw(st.integers(3, 40)),
    )


def rank(verdict: Verdict) -> int:
    return ORDER.index(verdict.outcome)


def numbers(verdict: Verdict) -> Iterator[float]:
    for metric in verdict.metrics:
        interval = () if metric.interval is None else astuple(metric.interval)
        values = (metric.canary, metric.stable, metric.difference, *interval)
        yield from (value for value in values if value is not None)


def numbers_are_numbers_and_the_same_every_time(window: Window) -> None:
    verdict = judge(window, EVERYTHING)
    assert all(math.isfinite(value) for value in numbers(verdict))
    texts = [verdict.sentence, *(metric.sentence + metric.tested for metric in verdict.metrics)]
    assert not any(word in text.split() for text in texts for word in ("nan", "inf", "-inf", "None"))
    for metric in verdict.metrics:
        interval = metric.interval
        if interval is not None and interval.low is not None and interval.high is not None:
            assert interval.low <= interval.high
    assert judge(window, EVERYTHING) == verdict


def sides_that_change_places_are_never_both_worse(window: Window) -> None:
    swapped = tuple(replace(part, canary=part.stable, stable=part.canary) for part in window.slices)
    for one, other in zip(judge(window).metrics, judge(replace(window, slices=swapped)).metrics, strict=True):
        assert not one.outcome is other.outcome is Outcome.FAIL
        if one.difference is not None and other.difference is not None:
            assert one.difference == pytest.approx(-other.difference)


def more_errors_are_never_better(of: tuple[Slice, int], more: int) -> None:
    part, number = of
    canary = part.canary
    assume(canary.errors + more <= canary.requests)
    worse = replace(part, canary=replace(canary, errors=canary.errors + more))
    before, after = (judge(Window(slices=(each,) * number), ERRORS_ALONE) for each in (part, worse))
    assert rank(before) <= rank(after)


def slower_is_never_better(window: Window, classes: int) -> None:
    slower = tuple(
        replace(part, canary=replace(part.canary, ttft=_later(part.canary.ttft, classes))) for part in window.slices
    )
    before, after = judge(window, TTFT_ALONE), judge(replace(window, slices=slower), TTFT_ALONE)
    assert not (before.outcome is Outcome.FAIL and after.outcome is Outcome.PASS)


def more_of_the_same_is_never_less_certain(of: tuple[Slice, int], times: int) -> None:
    part, number = of
    before = judge(Window(slices=(part,) * number), ERRORS_ALONE)
    after = judge(Window(slices=(part,) * (number * times)), ERRORS_ALONE)
    assert before.outcome is Outcome.INCONCLUSIVE or after.outcome is not Outcome.INCONCLUSIVE
    assert before.outcome is not Outcome.FAIL or after.outcome is Outcome.FAIL


def stricter_settings_fail_less(window: Window, share: float) -> None:
    stricter = replace(EVERYTHING, false_alarm=EVERYTHING.false_alarm * share)
    if judge(window, stricter).outcome is Outcome.FAIL:
        assert judge(window, EVERYTHING).outcome is Outcome.FAIL


def a_ceiling_never_makes_better(window: Window, ceiling: float) -> None:
    assert isinstance(TTFT_ALONE.ttft, QuantileRule)
    free = replace(TTFT_ALONE, false_alarm=TTFT_ALONE.false_alarm / 2)
    capped = replace(TTFT_ALONE, ttft=replace(TTFT_ALONE.ttft, ceiling=ceiling))
    # A ceiling is one test more: each gets half of what may be wrong.
    before, after = judge(window, free), judge(window, capped)
    both_over = "going back would not help" in after.sentence
    assert both_over or rank(before) <= rank(after)


def _later(sketch: Sketch, classes: int) -> Sketch:
    moved: Counter[int] = Counter()
    for index, count in sketch.counts.items():
        moved[min(index + classes, CLASS_MAX)] += count
    return Sketch(moved)


PROMISES: list[tuple[Callable[..., None], Mapping[str, st.SearchStrategy[Any]]]] = [
    (numbers_are_numbers_and_the_same_every_time, {"window": WINDOWS}),
    (sides_that_change_places_are_never_both_worse, {"window": WINDOWS}),
    (more_errors_are_never_better, {"of": steady(), "more": st.integers(1, 100)}),
    (slower_is_never_better, {"window": WINDOWS, "classes": st.integers(1, 60)}),
    (more_of_the_same_is_never_less_certain, {"of": steady(), "times": st.integers(2, 5)}),
    (stricter_settings_fail_less, {"window": WINDOWS, "share": st.floats(0.001, 1)}),
    (a_ceiling_never_makes_better, {"window": WINDOWS, "ceiling": st.floats(0.1, 1e6)}),
]


@pytest.mark.parametrize(("promise", "given_facts"), PROMISES, ids=[promise.__name__ for promise, _ in PROMISES])
@pytest.mark.parametrize("examples", [8, pytest.param(80, marks=pytest.mark.e2e)])
def test_the_judge(
    promise: Callable[..., None], given_facts: Mapping[str, st.SearchStrategy[Any]], examples: int
) -> None:
    settings(max_examples=examples)(given(**given_facts)(promise))()
