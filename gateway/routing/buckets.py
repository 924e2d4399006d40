"""Token buckets: so many per minute, at once if nothing was taken for a minute.

A bucket holds at most one minute's worth and fills at an even pace. What was taken on an estimate is put right when the
true amount is known, so a bucket may be in debt: then everybody waits until it's paid. A debt is never more than ten
minutes' worth, so that one mistaken figure of an engine doesn't shut a tenant out for good.
"""

from typing import Final

_MINUTE_S: Final = 60.0
_MOST_MINUTES_OF_DEBT: Final = 10.0


class Bucket:
    """One limit. Times are seconds of one monotonic clock; `limit` is what a minute gives."""

    __slots__ = ("at", "level", "limit")

    def __init__(self, limit: float, *, now: float) -> None:
        """Begin full."""
        self.limit = limit
        self.level = limit
        self.at = now

    def fill(self, now: float) -> float:
        """What is there now; below zero is a debt."""
        level = self.level
        if level < self.limit:
            level = min(self.limit, level + (now - self.at) * self.limit / _MINUTE_S)
            self.level = level
        self.at = now
        return level

    def take(self, amount: float) -> None:
        """Take so much, or give it back if it's negative; whether it's there was asked before."""
        self.level = max(min(self.level - amount, self.limit), -self.limit * _MOST_MINUTES_OF_DEBT)

    def wait_s(self, amount: float) -> float:
        """Seconds from the last `fill` until so much is there; an amount over the limit waits for a full bucket."""
        lacking = min(amount, self.limit) - self.level
        return lacking * _MINUTE_S / self.limit if lacking > 0 else 0.0

    @property
    def full_in_s(self) -> float:
        """Seconds from the last `fill` until the bucket is full."""
        return (self.limit - self.level) * _MINUTE_S / self.limit

    def resize(self, limit: float) -> None:
        """Give another limit; what was used up stays used up in proportion."""
        self.level = self.level / self.limit * limit
        self.limit = limit
