"""Which days of records there must be, and which have had their time. A day is one of UTC."""

import re
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from typing import Final

# Made ahead, so that nothing has to be made in a hurry when no sweep has run for a while.
DAYS_AHEAD: Final = 3
_NAME: Final = re.compile(r".*_(\d{4})(\d\d)(\d\d)")


def first_kept_day(*, today: date, keep_days: int) -> date:
    """The oldest day of those kept: ``keep_days`` whole ones, at least one, beside today."""
    return today - timedelta(days=max(1, keep_days))


def missing_days(held: Collection[date], *, today: date) -> list[date]:
    """The days from today on that must be there and are not."""
    wanted = (today + timedelta(days=ahead) for ahead in range(DAYS_AHEAD + 1))
    return [day for day in wanted if day not in held]


def days_in(names: Iterable[str]) -> list[date]:
    """The days that tables are of by their names, in order; a name that ends in no day is of none."""
    found = (_NAME.fullmatch(name) for name in names)
    return sorted(date(*map(int, match.groups())) for match in found if match is not None)
