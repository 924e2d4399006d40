from datetime import timedelta

import pytest

from cachecontrol.scoring.rates import add_hits, decayed, rate_per_h
from tests.unit.cachecontrol.scoring.kit import NOW

HALF_LIFE = timedelta(minutes=30)


def test_a_count_halves_with_each_half_life() -> None:
    assert decayed(8.0, as_of=NOW, now=NOW + HALF_LIFE, half_life=HALF_LIFE) == 4.0
    assert decayed(8.0, as_of=NOW, now=NOW + 3 * HALF_LIFE, half_life=HALF_LIFE) == 1.0


def test_a_clock_that_went_back_decays_nothing() -> None:
    assert decayed(8.0, as_of=NOW, now=NOW - HALF_LIFE, half_life=HALF_LIFE) == 8.0


def test_what_is_counted_late_counts_with_what_is_left_of_it() -> None:
    count, as_of = add_hits(2.0, as_of=NOW, hits=4, at=NOW - HALF_LIFE, half_life=HALF_LIFE)
    assert (count, as_of) == (4.0, NOW)


def test_new_hits_are_added_to_what_is_left() -> None:
    count, as_of = add_hits(2.0, as_of=NOW, hits=4, at=NOW + HALF_LIFE, half_life=HALF_LIFE)
    assert (count, as_of) == (5.0, NOW + HALF_LIFE)


def test_a_steady_rate_is_found_again() -> None:
    count, as_of = 0.0, NOW
    for minute in range(60 * 12):
        count, as_of = add_hits(count, as_of=as_of, hits=1, at=NOW + timedelta(minutes=minute), half_life=HALF_LIFE)
    assert rate_per_h(count, half_life=HALF_LIFE) == pytest.approx(60, rel=0.02)


def test_years_without_a_request_are_a_rate_of_nothing_and_no_error() -> None:
    assert decayed(1e9, as_of=NOW, now=NOW + timedelta(days=36_500), half_life=timedelta(minutes=1)) == 0.0
