"""The verdict: what fails, what passes, what holds, and how it is said."""

import math
import random
from collections.abc import Callable

import pytest

from releases.judge.facts import Marks, Side, Sketch, Slice, Window
from releases.judge.judge import judge
from releases.judge.settings import Allowance, FloorRule, JudgeSettings, QuantileRule, RateRule
from releases.judge.verdict import Metric, MetricVerdict, Outcome

ERRORS_ALONE = JudgeSettings(ttft=None, total=None, cost=None, quality=None)
TTFT_ALONE = JudgeSettings(errors=None, total=None, cost=None, quality=None)
SLICES = 30


def times(number: int, *, median: float, seed: int = 0) -> Sketch:
    rng = random.Random(seed)
    return Sketch.of(median * math.exp(rng.gauss(0, 0.5)) for _ in range(number))


def window(canary: Side, stable: Side, slices: int = SLICES, agreement: Marks | None = None) -> Window:
    return Window(slices=(Slice(canary=canary, stable=stable, agreement=agreement or Marks()),) * slices)


def errors_window(canary: int, stable: int, *, of: int = 200, slices: int = SLICES) -> Window:
    return window(Side(requests=of, errors=canary), Side(requests=of, errors=stable), slices)


def ttft_window(canary: float, stable: float, *, number: int = 100) -> Window:
    slices = tuple(
        Slice(
            canary=Side(ttft=times(number, median=canary, seed=2 * part)),
            stable=Side(ttft=times(number, median=stable, seed=2 * part + 1)),
        )
        for part in range(SLICES)
    )
    return Window(slices=slices)


def only(found: Window, settings: JudgeSettings) -> MetricVerdict:
    (metric,) = judge(found, settings).metrics
    return metric


@pytest.mark.parametrize(
    ("canary", "stable", "outcome"),
    [
        (2, 2, Outcome.PASS),
        (0, 0, Outcome.PASS),
        (1, 2, Outcome.PASS),
        (6, 2, Outcome.FAIL),
        (200, 0, Outcome.FAIL),
        (200, 200, Outcome.PASS),
    ],
)
def test_errors_are_compared_with_stable(canary: int, stable: int, outcome: Outcome) -> None:
    assert judge(errors_window(canary, stable), ERRORS_ALONE).outcome is outcome


def test_no_data_is_inconclusive_and_holds() -> None:
    for empty in (Window(), window(Side(), Side()), errors_window(0, 0, of=0)):
        verdict = judge(empty)
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert {metric.outcome for metric in verdict.metrics} == {Outcome.INCONCLUSIVE}
        assert verdict.of(Metric.ERRORS).holds  # type: ignore[union-attr]
        assert "no data (0 requests of the canary and 0 of the stable version)" in verdict.sentence


@pytest.mark.parametrize("of", [(200, 0), (0, 200)])
def test_data_of_one_side_alone_is_no_data(of: tuple[int, int]) -> None:
    found = window(Side(requests=of[0], errors=of[0]), Side(requests=of[1]))
    assert judge(found, ERRORS_ALONE).outcome is Outcome.INCONCLUSIVE


def test_too_few_requests_hold_however_bad_they_are() -> None:
    few = errors_window(9, 0, of=9, slices=3)
    verdict = judge(few, ERRORS_ALONE)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "too few yet, 27 requests of the canary and 27 of the stable version of 30 needed" in verdict.sentence


def test_what_happened_in_two_slices_may_be_one_event() -> None:
    assert judge(errors_window(200, 2, slices=2), ERRORS_ALONE).outcome is Outcome.INCONCLUSIVE
    assert judge(errors_window(200, 2, slices=3), ERRORS_ALONE).outcome is Outcome.FAIL


def test_a_burst_of_one_client_is_no_harm_and_the_same_number_all_along_is() -> None:
    calm = Slice(canary=Side(requests=40), stable=Side(requests=360, errors=4))
    burst = Slice(canary=Side(requests=100, errors=60), stable=Side(requests=360, errors=4))
    steady = Slice(canary=Side(requests=42, errors=2), stable=Side(requests=360, errors=4))
    assert judge(Window(slices=(calm,) * 29 + (burst,)), ERRORS_ALONE).outcome is Outcome.INCONCLUSIVE
    assert judge(Window(slices=(steady,) * 30), ERRORS_ALONE).outcome is Outcome.FAIL


def test_trouble_that_hits_both_sides_alike_is_no_harm() -> None:
    calm = Slice(canary=Side(requests=200, errors=1), stable=Side(requests=200, errors=1))
    trouble = Slice(canary=Side(requests=200, errors=100), stable=Side(requests=200, errors=100))
    assert judge(Window(slices=(calm,) * 25 + (trouble,) * 5), ERRORS_ALONE).outcome is not Outcome.FAIL


def test_certain_harm_that_does_not_matter_is_passed() -> None:
    found = window(Side(requests=1_000_000, errors=10_600), Side(requests=1_000_000, errors=10_000))
    metric = only(found, ERRORS_ALONE)
    assert metric.outcome is Outcome.PASS
    assert metric.interval is not None
    assert metric.interval.low is not None
    assert metric.interval.low > 0


def test_a_slow_candidate_fails_and_an_equal_one_passes() -> None:
    assert judge(ttft_window(130, 100), TTFT_ALONE).outcome is Outcome.FAIL
    assert judge(ttft_window(100, 100), TTFT_ALONE).outcome is Outcome.PASS
    assert judge(ttft_window(70, 100), TTFT_ALONE).outcome is Outcome.PASS


def test_milliseconds_that_nobody_notices_do_not_matter() -> None:
    assert judge(ttft_window(5, 2), TTFT_ALONE).outcome is Outcome.PASS


def test_one_slow_metric_among_sound_ones_fails_the_whole() -> None:
    sound, slow = times(100, median=100), times(100, median=300)
    stable = Side(requests=100, ttft=sound, total=sound, cost=sound)
    canary = Side(requests=100, ttft=sound, total=slow, cost=sound)
    verdict = judge(window(canary, stable))
    assert verdict.outcome is Outcome.FAIL
    assert [metric.metric for metric in verdict.metrics if metric.outcome is Outcome.FAIL] == [Metric.TOTAL]
    assert verdict.sentence.startswith("The canary is worse than the stable version. Time of an answer, p95: ")


def test_needed_data_that_are_missing_hold_the_whole() -> None:
    sound = times(100, median=100)
    assert judge(window(Side(requests=100, ttft=sound), Side(requests=100, ttft=sound))).outcome is Outcome.INCONCLUSIVE


def test_marks_and_costs_that_nobody_sends_do_not_hold() -> None:
    side = Side(requests=100, ttft=times(100, median=100), total=times(100, median=100))
    assert judge(window(side, side)).outcome is Outcome.PASS


@pytest.mark.parametrize(("canary", "outcome"), [(8.0, Outcome.PASS), (5.0, Outcome.FAIL), (7.2, Outcome.INCONCLUSIVE)])
def test_marks_of_people_fail_when_worse_and_hold_when_they_look_it(canary: float, outcome: Outcome) -> None:
    slices = []
    for part in range(SLICES):
        swing = 1.0 if part % 2 else -1.0
        stable = Side(quality=Marks(10, 8 + swing), requests=100)
        slices.append(Slice(canary=Side(quality=Marks(10, canary - swing), requests=100), stable=stable))
    settings = JudgeSettings(ttft=None, total=None, cost=None)
    verdict = judge(Window(slices=tuple(slices)), settings)
    assert verdict.outcome is outcome
    quality = verdict.of(Metric.QUALITY)
    assert quality is not None
    assert quality.stable == pytest.approx(20)


def test_costs_are_in_the_callers_unit() -> None:
    side, dear = Side(cost=times(100, median=10)), Side(cost=times(100, median=20))
    settings = JudgeSettings(errors=None, ttft=None, total=None, quality=None)
    found = Window(slices=(Slice(canary=dear, stable=side),) * SLICES, cost_unit="millicent")
    (metric,) = judge(found, settings).metrics
    assert metric.outcome is Outcome.FAIL
    assert metric.unit == "millicent"
    assert "millicent of 3000 answers against" in metric.sentence


@pytest.mark.parametrize(("mean", "outcome"), [(0.9, Outcome.PASS), (0.5, Outcome.FAIL), (0.775, Outcome.INCONCLUSIVE)])
def test_agreement_has_to_reach_its_floor(mean: float, outcome: Outcome) -> None:
    settings = JudgeSettings(
        errors=None, ttft=None, total=None, cost=None, quality=None, agreement=FloorRule(floor=0.8)
    )
    found = window(Side(), Side(), agreement=Marks(10, 10 * mean))
    (metric,) = judge(found, settings).metrics
    assert metric.outcome is outcome
    assert metric.canary == pytest.approx(mean * 100)


def with_ceiling(ceiling: float) -> JudgeSettings:
    rule = QuantileRule(
        quantile=0.95, matters=Allowance(20, 0.1), margin=Allowance(50, 0.25), minimum=100, ceiling=ceiling
    )
    return JudgeSettings(errors=None, total=None, cost=None, quality=None, ttft=rule)


def test_a_ceiling_holds_whatever_stable_does() -> None:
    metric = only(ttft_window(110, 100), with_ceiling(200))
    assert metric.outcome is Outcome.INCONCLUSIVE
    assert "both are over the ceiling of 200 ms, so that going back would not help" in metric.sentence
    metric = only(ttft_window(200, 100), with_ceiling(300))
    assert metric.outcome is Outcome.FAIL
    assert "over the ceiling of 300 ms" in metric.sentence
    assert only(ttft_window(100, 100), with_ceiling(1000)).outcome is Outcome.PASS


def test_sentences_name_numbers_units_and_why() -> None:
    metric = only(errors_window(6, 2), ERRORS_ALONE)
    assert metric.sentence == (
        "Errors: 3 % of 6000 requests against 1 % of 6000, between 1.03 and 2.79 percentage points more; certainly "
        "worse, and by 0.5 percentage points or more as it looks."
    )
    assert metric.tested == (
        "mixture sequential test, fails at most 0.250% of equal versions, at however many looks; passes at most 5% of "
        "what is worse by the margin"
    )
    metric = only(ttft_window(100, 100), TTFT_ALONE)
    assert " ms of 3000 answers against " in metric.sentence
    assert metric.sentence.endswith(" ms.")


def test_the_interval_says_the_same_as_the_outcome() -> None:
    for canary in range(1, 8):
        metric = only(errors_window(canary, 2), ERRORS_ALONE)
        assert metric.interval is not None
        low, high = metric.interval.low, metric.interval.high
        assert low is not None
        assert high is not None
        assert metric.difference is not None
        assert low < metric.difference < high
        assert (metric.outcome is Outcome.FAIL) == (low > 0 and metric.difference >= 0.5)
        assert (metric.outcome is Outcome.PASS) == (high < 1)


def test_what_happens_in_bursts_is_said() -> None:
    calm = Slice(canary=Side(requests=200), stable=Side(requests=200))
    burst = Slice(canary=Side(requests=200, errors=50), stable=Side(requests=200))
    assert (
        "requests count as one, as they come in bursts"
        in only(Window(slices=(calm,) * 20 + (burst,) * 2), ERRORS_ALONE).tested
    )


def test_more_metrics_and_steps_take_more_evidence_each() -> None:
    settings = JudgeSettings()
    assert settings.tests == 5
    assert settings.false_alarm_per_test == pytest.approx(0.01 / 20)
    assert with_ceiling(100).tests == 2
    assert ERRORS_ALONE.false_alarm_per_test == pytest.approx(0.01 / 4)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Allowance(0, 0),
        lambda: Allowance(-1, 1),
        lambda: RateRule(matters=Allowance(0.02), margin=Allowance(0.01), minimum=1),
        lambda: RateRule(matters=Allowance(0.01), margin=Allowance(1), minimum=1),
        lambda: RateRule(matters=Allowance(0.01), margin=Allowance(0.01), minimum=0),
        lambda: QuantileRule(quantile=1, matters=Allowance(1), margin=Allowance(1, 0.1), minimum=1),
        lambda: QuantileRule(quantile=0.5, matters=Allowance(1), margin=Allowance(1, 0.01), minimum=1),
        lambda: QuantileRule(quantile=0.5, matters=Allowance(1), margin=Allowance(1, 0.1), minimum=1, ceiling=0),
        lambda: FloorRule(floor=1.1),
        lambda: FloorRule(floor=0.1, slack=0.1),
        lambda: FloorRule(floor=0.8, minimum=0),
        lambda: JudgeSettings(false_alarm=0),
        lambda: JudgeSettings(false_pass=1),
        lambda: JudgeSettings(steps=0),
        lambda: JudgeSettings(minimum_slices=1),
        lambda: JudgeSettings(errors=None, ttft=None, total=None, cost=None, quality=None),
        lambda: Side(requests=1, errors=2),
        lambda: Marks(1, 2),
        lambda: Sketch({0: -1}),
        lambda: Sketch.of([math.nan]),
    ],
)
def test_settings_and_facts_that_make_no_sense_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"\."):
        wrong()


def test_a_shadow_is_judged_on_what_is_known_of_mirrored_answers() -> None:
    settings = JudgeSettings(agreement=FloorRule(floor=0.5)).for_shadow
    sound = Side(requests=100, total=times(100, median=100))
    verdict = judge(window(sound, sound, agreement=Marks(10, 9)), settings)
    assert verdict.outcome is Outcome.PASS
    assert {metric.metric for metric in verdict.metrics} == {Metric.ERRORS, Metric.TOTAL, Metric.AGREEMENT}
