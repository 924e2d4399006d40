from datetime import date, timedelta

import pytest

from cachecontrol.requests.days import DAYS_AHEAD, days_in, first_kept_day, missing_days

TODAY, LAST = date(2026, 3, 1), date(2026, 2, 28)


def test_a_day_that_is_missing_from_today_on_is_made() -> None:
    ahead = [TODAY + timedelta(days=number) for number in range(DAYS_AHEAD + 1)]
    assert missing_days([], today=TODAY) == ahead
    assert missing_days([ahead[0], ahead[3]], today=TODAY) == [ahead[1], ahead[2], *ahead[4:]]
    assert missing_days(ahead, today=TODAY) == []


@pytest.mark.parametrize(("keep_days", "first"), [(35, date(2026, 1, 25)), (1, LAST), (0, LAST)])
def test_whole_days_beside_today_are_kept_and_always_one(keep_days: int, first: date) -> None:
    assert first_kept_day(today=TODAY, keep_days=keep_days) == first


def test_a_table_that_is_of_no_day_is_none() -> None:
    names = ["gateway_request_20260302", "gateway_request_default", "gateway_request_20260228"]
    assert days_in(names) == [date(2026, 2, 28), date(2026, 3, 2)]
