"""When a request is asked of a second node as well: its first has not begun to answer for longer than most take.

Hedged requests (Dean and Barroso, The Tail at Scale, CACM 2013): few more requests for a much shorter tail.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

# Of so many answers of a kind the newest count, and below so few nothing can be said of the slowest.
_WINDOW: Final = 400
_FEWEST: Final = 50
# A window is sorted once for so many new answers.
_EVERY: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedging:
    """Ask again after `after_s` seconds, or (None) after what `quantile` of the pool's newest answers took to begin.

    `share` of the requests may be asked twice, over time.
    """

    after_s: float | None = None
    quantile: float = 0.95
    share: float = 0.05


class FirstBytes:
    """How long the newest answers of each pool took to begin, streams and whole answers apart."""

    __slots__ = ("_known", "_quantile")

    def __init__(self, quantile: float) -> None:
        """Tell this quantile, 0 to 1."""
        self._quantile = quantile
        self._known: dict[tuple[str, bool], _Window] = {}

    def observe(self, pool: str, took_s: float, *, stream: bool) -> None:
        """An answer began so long after it was asked for. `pool` is the digest of its base revision."""
        window = self._known.get((pool, stream))
        if window is None:
            window = self._known[pool, stream] = _Window()
        window.add(took_s, self._quantile)

    def usual_s(self, pool: str, *, stream: bool) -> float | None:
        """What the quantile of them took at most; None while there are too few to tell."""
        window = self._known.get((pool, stream))
        return None if window is None else window.value


class _Window:
    __slots__ = ("_news", "_times", "value")

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_WINDOW)
        self._news = 0
        self.value: float | None = None

    def add(self, took_s: float, quantile: float) -> None:
        self._times.append(took_s)
        self._news += 1
        if len(self._times) >= _FEWEST and (self.value is None or self._news >= _EVERY):
            ordered = sorted(self._times)
            self.value = ordered[min(math.ceil(quantile * len(ordered)), len(ordered)) - 1]
            self._news = 0
