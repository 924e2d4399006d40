import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.buckets import Bucket


def test_a_full_bucket_gives_a_minutes_worth_at_once_and_then_at_an_even_pace() -> None:
    bucket = Bucket(60, now=0.0)
    bucket.take(60)
    assert bucket.fill(0.0) == 0
    assert bucket.fill(1.0) == pytest.approx(1)
    assert bucket.fill(30.0) == pytest.approx(30)
    assert bucket.fill(600.0) == 60


def test_the_wait_is_exactly_how_long_it_takes() -> None:
    bucket = Bucket(60, now=0.0)
    bucket.take(60)
    bucket.fill(0.5)
    wait_s = bucket.wait_s(1)
    assert wait_s == pytest.approx(0.5)
    assert bucket.fill(0.5 + wait_s) == pytest.approx(1)


def test_an_amount_over_the_limit_waits_for_a_full_bucket() -> None:
    bucket = Bucket(60, now=0.0)
    assert bucket.wait_s(1000) == 0
    bucket.take(30)
    assert bucket.wait_s(1000) == pytest.approx(30)
    assert bucket.full_in_s == pytest.approx(30)


def test_a_debt_is_paid_before_anything_is_given_and_is_never_more_than_ten_minutes() -> None:
    bucket = Bucket(60, now=0.0)
    bucket.take(120)
    assert bucket.fill(0.0) == -60
    assert bucket.wait_s(1) == pytest.approx(61)
    bucket.take(2**31)
    assert bucket.fill(600.0) == pytest.approx(0)


def test_what_is_given_back_never_overflows() -> None:
    bucket = Bucket(60, now=0.0)
    bucket.take(-100)
    assert bucket.level == 60


def test_another_limit_keeps_what_was_used_in_proportion() -> None:
    bucket = Bucket(60, now=0.0)
    bucket.take(30)
    bucket.resize(120)
    assert (bucket.limit, bucket.level) == (120, 60)


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5)), max_size=60))
def test_no_more_is_given_than_a_bucket_and_its_pace_allow(steps: list[tuple[float, int]]) -> None:
    bucket, now, given_out = Bucket(10, now=0.0), 0.0, 0
    for pause_s, amount in steps:
        now += pause_s
        if bucket.fill(now) >= amount:
            bucket.take(amount)
            given_out += amount
        assert given_out <= 10 + now * 10 / 60 + 1e-6
