"""What the bench of rollbacks says of what those who ask had in their hands."""

import pytest

from bench.release.fleet import Answer
from bench.release.rollbacks import Click, Clicks, Kind, back_at, click_of, percentile


def answers(*said: tuple[float, float, bool | None]) -> list[Answer]:
    return [Answer(began, ended, is_bad) for began, ended, is_bad in said]


def test_a_gateway_is_back_with_its_first_answer_after_the_last_bad_one() -> None:
    early = answers((0.0, 0.1, True), (0.05, 0.2, False), (0.1, 0.15, True), (0.12, 0.3, False), (0.4, 0.5, False))
    assert back_at(early) == 0.3


def test_a_gateway_that_never_had_the_bad_version_is_back_with_its_first_answer() -> None:
    assert back_at(answers((0.0, 0.1, False), (0.2, 0.3, False))) == 0.1


def test_the_slowest_gateway_counts_and_what_was_there_before_the_click_does_not() -> None:
    found = click_of(
        {
            "a": answers((0.9, 0.95, False), (1.0, 1.01, True), (1.02, 1.03, False)),
            "b": answers((0.99, 1.02, True), (1.04, 1.05, True), (1.06, 1.07, False), (1.08, 1.1, None)),
        },
        clicked=1.0,
        answered=1.03,
    )
    assert (round(found.api_ms), round(found.everywhere_ms)) == (30, 70)
    assert (found.strays, found.failed) == (1, 1)


@pytest.mark.parametrize(("share", "value"), [(0.5, 10), (0.95, 19), (1.0, 20), (0.01, 1)])
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(share: float, value: int) -> None:
    assert percentile(range(1, 21), share) == value


def test_both_kinds_count_and_each_has_its_line() -> None:
    found = Clicks(rate=400)
    for number in range(1, 11):
        click = Click(api_ms=5, everywhere_ms=number, strays=1, failed=0)
        found.clicks[Kind.CANARY].append(click)
        found.clicks[Kind.PROMOTED].append(Click(api_ms=5, everywhere_ms=100 + number, strays=0, failed=1))
    assert (found.p95_ms, found.failed) == (109, 10)
    canary, promoted = found.lines()
    assert "10 rollbacks, canary, at 400 requests a second" in canary
    assert "p50 5 ms, p95 10 ms, worst 10 ms" in canary
    assert "strays 10, failed 0" in canary
    assert "worst 110 ms" in promoted
