"""Exponentially decayed request counts, and the rates they stand for.

A count halves with every half-life; a request adds 1. With Poisson requests of rate λ the count settles around
λ * half-life / ln 2, so that its rate is count * ln 2 / half-life. Decay composes: to a later time in one step or in
many is the same.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

_HOUR: Final = timedelta(hours=1)


def decayed(amount: float, *, as_of: datetime, now: datetime, half_life: timedelta) -> float:
    """What a decaying count (or rate) of ``as_of`` has become; a time before ``as_of`` counts as ``as_of``."""
    age = max(now - as_of, timedelta())
    return amount * math.exp2(-(age / half_life))


def add_hits(
    count: float, *, as_of: datetime, hits: float, at: datetime, half_life: timedelta
) -> tuple[float, datetime]:
    """Count ``hits`` requests of the time ``at``: the new count and the time it is of.

    Requests may be counted late and in any order: those before ``as_of`` count with what is left of them by then.
    """
    if at >= as_of:
        return decayed(count, as_of=as_of, now=at, half_life=half_life) + hits, at
    return count + decayed(hits, as_of=at, now=as_of, half_life=half_life), as_of


def rate_per_h(count: float, *, half_life: timedelta) -> float:
    """Requests per hour that a decayed count stands for."""
    return count * math.log(2) / (half_life / _HOUR)
