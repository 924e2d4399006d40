from datetime import UTC, datetime, timedelta, timezone

import pytest

from cachecontrol.placement.prediction import Basis, Prediction, predict_rate

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def daily(days: int, *, busy: int = 12, count: int = 100) -> dict[datetime, int]:
    """So many days up to noon with one busy hour each; the first hour is known to have had one request."""
    start = NOON - timedelta(days=days)
    counts = {start + HOUR * hour: count for hour in range(24 * days) if (start + HOUR * hour).hour == busy}
    return {start: 1} | counts


def test_without_history_nothing_is_expected() -> None:
    assert predict_rate({}, now=NOON) == Prediction(0.0, Basis.NOTHING)


def test_within_the_first_day_the_last_hour_is_the_best_guess() -> None:
    counts = {NOON - HOUR * 2: 8, NOON - HOUR: 30}
    assert predict_rate(counts, now=NOON) == Prediction(30.0, Basis.RECENT)


def test_a_rush_at_the_same_time_of_each_day_is_expected_before_it_comes() -> None:
    found = predict_rate(daily(6), now=NOON)
    assert found.rate_per_h == pytest.approx(100, rel=0.05)
    assert found.basis is Basis.DAYS
    assert predict_rate(daily(6), now=NOON - HOUR * 2).rate_per_h < 1


def test_half_an_hour_across_two_hours_counts_each_by_its_share() -> None:
    found = predict_rate(daily(6), now=NOON - timedelta(minutes=15))
    assert found.rate_per_h == pytest.approx(50, rel=0.05)


def test_weekdays_differ_from_weekends() -> None:
    start = NOON - timedelta(weeks=4)
    hours = [start + HOUR * hour for hour in range(24 * 28)]
    counts = {hour: 100 if hour.weekday() < 5 and 9 <= hour.hour < 17 else 0 for hour in hours}
    saturday = NOON - timedelta(days=4)
    found = predict_rate(counts, now=NOON)
    assert found.basis is Basis.WEEKS
    assert found.rate_per_h > 10 * predict_rate(counts, now=saturday).rate_per_h


def test_a_day_with_twice_the_usual_is_expected_to_go_on_so() -> None:
    start = NOON - timedelta(days=5)
    usual = {start + HOUR * hour: 40 if hour % 2 else 80 for hour in range(24 * 5)}
    busy = usual | {hour: count * 2 for hour, count in usual.items() if hour >= NOON - HOUR * 6}
    assert predict_rate(busy, now=NOON).rate_per_h > 1.5 * predict_rate(usual, now=NOON).rate_per_h


def test_a_burst_without_rhythm_is_taken_for_what_the_last_hour_says() -> None:
    start = NOON - timedelta(days=5)
    steady = {start + HOUR * hour: 5 for hour in range(24 * 5)}
    stopped = steady | {start + HOUR * hour: 0 for hour in range(24 * 3, 24 * 5)}
    assert predict_rate(stopped, now=NOON).rate_per_h < 0.5


def test_time_zones_are_of_no_consequence() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert predict_rate(daily(6), now=elsewhere) == predict_rate(daily(6), now=NOON)


def test_the_hour_that_is_not_over_is_left_out() -> None:
    assert predict_rate(daily(6) | {NOON: 10_000}, now=NOON + HOUR / 2) == predict_rate(daily(6), now=NOON + HOUR / 2)
