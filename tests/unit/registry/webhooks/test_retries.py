from datetime import UTC, datetime, timedelta

import pytest

from registry.webhooks.retries import FIRST_PAUSE, JITTER, LONGEST_ASKED, LONGEST_PAUSE, PATIENCE, next_try

SINCE = datetime(2026, 7, 4, 12, tzinfo=UTC)


def pause(tries: int, *, draw: float = 0.5, asked: timedelta | None = None) -> timedelta:
    at = next_try(tries=tries, since=SINCE, now=SINCE, draw=draw, asked=asked)
    assert at is not None
    return at - SINCE


def test_pauses_grow_threefold_up_to_the_longest() -> None:
    assert [pause(tries).total_seconds() for tries in (1, 2, 3, 4)] == [5, 15, 45, 135]
    assert pause(9) == pause(50_000) == LONGEST_PAUSE


def test_pauses_differ_by_a_fifth_either_way() -> None:
    assert pause(1, draw=0) == FIRST_PAUSE * (1 - JITTER)
    assert pause(1, draw=0.999_999) == pytest.approx(FIRST_PAUSE * (1 + JITTER), abs=timedelta(milliseconds=1))


def test_a_receiver_may_ask_for_more_time_but_not_for_less_nor_for_ever() -> None:
    assert pause(1, asked=timedelta(seconds=90)) == timedelta(seconds=90)
    assert pause(3, asked=timedelta(seconds=1)) == timedelta(seconds=45)
    assert pause(1, asked=timedelta(days=300)) == LONGEST_ASKED


def test_what_has_not_got_through_within_a_day_is_parked() -> None:
    now, tries = SINCE, 0
    while True:
        tries += 1
        at = next_try(tries=tries, since=SINCE, now=now, draw=0.5)
        if at is None:
            break
        assert at > now
        now = at
    assert now <= SINCE + PATIENCE < now + LONGEST_PAUSE
    assert 12 <= tries <= 20
