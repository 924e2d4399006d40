"""How far predictions are off for versions that people use by day and on weekdays."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

from cachecontrol.placement.prediction import hour_of, predict_rate

_START = datetime(2026, 1, 5, tzinfo=UTC)
_HOUR, _DAY_HOURS, _WEEK_DAYS, _WORK_DAYS = timedelta(hours=1), 24, 7, 5
_VERSIONS, _WEEKS = 40, 3


def prediction_errors() -> dict[str, float]:
    """The mean absolute error against the mean rate, of the prediction and of taking the last hour."""
    rng = random.Random(4)  # noqa: S311  an example, not a secret
    off_predicted = off_last = total = 0.0
    for _version in range(_VERSIONS):
        peak, most = rng.uniform(0, _DAY_HOURS), 10 ** rng.uniform(0.5, 3)
        hours = range(_DAY_HOURS * _WEEK_DAYS * _WEEKS)
        counts = {_START + _HOUR * hour: _poisson(rng, _rate(hour + 0.5, peak, most)) for hour in hours}
        for hour in hours[_DAY_HOURS * _WEEK_DAYS * (_WEEKS - 1) :: 5]:
            now = _START + _HOUR * hour
            comes = _rate(hour + 0.25, peak, most)
            off_predicted += abs(predict_rate(counts, now=now).rate_per_h - comes)
            off_last += abs(counts[hour_of(now) - _HOUR] - comes)
            total += comes
    return {"the prediction": off_predicted / total, "the last hour": off_last / total}


def _rate(hour: float, peak: float, most: float) -> float:
    """Requests per hour: a day's wave around its peak, less at weekends."""
    wave = max(0.02, math.cos((hour - peak) / _DAY_HOURS * 2 * math.pi))
    is_weekend = hour // _DAY_HOURS % _WEEK_DAYS >= _WORK_DAYS
    return most * wave * (0.4 if is_weekend else 1.0)


def _poisson(rng: random.Random, mean: float) -> int:
    """Near enough for counts: rounded normal."""
    return max(0, round(rng.gauss(mean, math.sqrt(mean))))
