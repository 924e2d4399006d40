"""The demand of the next half hour, from the last hour and from how it was at the same time of other days and weeks.

Two predictors are asked. The seasonal one: the weighted mean of the same hour of other days and weeks, the nearer the
more (Holt and Winters' smoothing with fixed weights, so that nothing has to be fitted or kept), times how the last hour
compares with what was expected of it. The steady one: as in the last hour. Each counts by how well it would have
predicted the last day: traffic with a daily rhythm is met by its rhythm, and bursts are taken for what they are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(weeks=1)
# How far back is looked, and what each step back counts of the one before.
_DAYS, _WEEKS, _FADES = 6, 4, 0.7
_LAGS: Final = (
    *((_DAY * back, _FADES ** (back - 1)) for back in range(1, _DAYS + 1)),
    *((_WEEK * back, _FADES ** (back - 1)) for back in range(1, _WEEKS + 1)),
)
# By so much at most is today taken to differ from other days.
_LEAST_FACTOR, _MOST_FACTOR = 0.01, 8.0
# So many of the last hours judge the predictors.
_JUDGES: Final = 24


class Basis(StrEnum):
    """What a prediction rests on: other weeks, other days, or the last hour alone because there is no more."""

    WEEKS = "weeks"
    DAYS = "days"
    RECENT = "recent"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Prediction:
    rate_per_h: float
    basis: Basis


def predict_rate(
    counts: Mapping[datetime, int], *, now: datetime, ahead: timedelta = timedelta(minutes=30)
) -> Prediction:
    """The mean request rate (per hour) from ``now`` until ``ahead`` later.

    Args:
        counts: requests by the hour they came in: the hour's beginning, in UTC. Hours after the first one that are
            missing had none. The hour of ``now`` isn't over and is left out.
        now: with a time zone.
        ahead: above zero.

    """
    this_hour = hour_of(now)
    known = {hour: count for hour, count in counts.items() if hour < this_hour}
    if not known:
        return Prediction(0.0, Basis.NOTHING)
    history = _History(known)
    last = this_hour - _HOUR
    steady = float(known.get(last, 0))
    if history.expected(last) is None:
        return Prediction(steady, Basis.RECENT)
    basis = Basis.WEEKS if last - _WEEK >= history.first else Basis.DAYS
    rhythm = history.factor(last) * sum(
        share * (history.expected(hour) or 0.0) for hour, share in _hours_until(now, now + ahead)
    )
    trust = history.trust_in_rhythm(last)
    return Prediction(math.expm1(trust * math.log1p(rhythm) + (1 - trust) * math.log1p(steady)), basis)


def hour_of(moment: datetime) -> datetime:
    """The beginning of its hour, in UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


class _History:
    def __init__(self, counts: Mapping[datetime, int]) -> None:
        self._counts = counts
        self._memory: dict[datetime, float | None] = {}
        self.first = min(counts)

    def expected(self, hour: datetime) -> float | None:
        """What the same hour of other days and weeks had; None when nothing goes back so far."""
        if hour not in self._memory:
            pairs = [(self._counts.get(hour - lag, 0), weight) for lag, weight in _LAGS if hour - lag >= self.first]
            total = sum(weight for _count, weight in pairs)
            self._memory[hour] = sum(count * weight for count, weight in pairs) / total if total else None
        return self._memory[hour]

    def factor(self, hour: datetime) -> float:
        """How an hour compares with what was expected of it."""
        factor = (self._counts.get(hour, 0) + 1) / ((self.expected(hour) or 0.0) + 1)
        return max(_LEAST_FACTOR, min(_MOST_FACTOR, factor))

    def trust_in_rhythm(self, last: datetime) -> float:
        """From 0 to 1, by the squared errors (of logarithms) that both predictors would have made up to ``last``."""
        of_rhythm = of_steady = 1e-9
        for back in range(_JUDGES):
            hour = last - _HOUR * back
            before = hour - _HOUR
            if self.expected(before) is None:
                break
            had = math.log1p(self._counts.get(hour, 0))
            of_rhythm += (had - math.log1p(self.factor(before) * (self.expected(hour) or 0.0))) ** 2
            of_steady += (had - math.log1p(self._counts.get(before, 0))) ** 2
        return of_steady**2 / (of_steady**2 + of_rhythm**2)


def _hours_until(start: datetime, end: datetime) -> list[tuple[datetime, float]]:
    """The hours between two times with the share of the time that each has."""
    hours = []
    hour = hour_of(start)
    while hour < end:
        overlap = min(end, hour + _HOUR) - max(start, hour)
        hours.append((hour, overlap / (end - start)))
        hour += _HOUR
    return hours
