"""When a node is passed over because of what its engine did, and how it comes back.

Passive: a run of failures, or too large a share of them within the last seconds, ejects it; after a time that doubles
with each ejection in a row, a request is let through now and then (half open) until one succeeds. Active: its /health
is asked; one that doesn't answer several times in a row, with no request answered in between (an engine may be too busy
to be asked), is down. Outlier ejection as in Envoy: where every node that has a version is ejected, the ejected ones
are used all the same (the choice sees to that), since the fault may as well lie with the requests; nodes that are down
are not.
"""

import enum
from typing import Final

RUN_OF_FAILURES: Final = 5
SHARE_OF_FAILURES: Final = 0.5
LEAST_REQUESTS: Final = 20
WINDOW_S: Final = 10.0
FIRST_EJECTION_S: Final = 2.0
LONGEST_EJECTION_S: Final = 60.0
# A trial may be a long stream, or hang: the next one doesn't wait for its end.
TRIAL_EVERY_S: Final = 2.0
MISSED_CHECKS: Final = 3
_MOST_DOUBLINGS: Final = 5


class BreakerState(enum.StrEnum):
    """As the metrics show it."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    DOWN = "down"


class Breaker:
    """What is known of one node's engine. Times are seconds of one monotonic clock."""

    __slots__ = (
        "_began",
        "_ejections",
        "_failures",
        "_missed",
        "_next_trial",
        "_requests",
        "_run",
        "_until",
        "is_down",
        "is_open",
    )

    def __init__(self) -> None:
        """Begin closed."""
        self.is_open = False
        self.is_down = False
        self._run = 0
        self._requests = 0
        self._failures = 0
        self._began = 0.0
        self._until = 0.0
        self._ejections = 0
        self._next_trial = 0.0
        self._missed = 0

    def allows(self, now: float) -> bool:
        """Whether a request may go there: closed, or half open and no trial begun lately."""
        return not self.is_open or (not self.is_down and now >= self._until and now >= self._next_trial)

    def state(self, now: float) -> BreakerState:
        """The state for people and metrics."""
        if self.is_down:
            return BreakerState.DOWN
        if not self.is_open:
            return BreakerState.CLOSED
        return BreakerState.HALF_OPEN if now >= self._until else BreakerState.OPEN

    def begin_trial(self, now: float) -> None:
        """A request goes there although the breaker is open: a trial, which its end has to be told with."""
        self._next_trial = now + TRIAL_EVERY_S

    def succeed(self, now: float, *, trial: bool = False) -> None:
        """The engine answered as it should, even if the answer was that the request is wrong."""
        self._run = self._missed = 0
        if trial and not self.is_down:
            self._close()
        elif self.is_down:
            self._come_back(now)
        if now - self._began > WINDOW_S:
            self._begin_window(now)
        self._requests += 1

    def fail(self, now: float, *, trial: bool = False) -> None:
        """The engine couldn't be reached, broke off, fell silent, lied, or said that it failed."""
        if now - self._began > WINDOW_S:
            self._begin_window(now)
        self._requests += 1
        self._failures += 1
        self._run += 1
        # What was sent while the node was ejected, for want of any other, doesn't prolong the ejection.
        is_over = trial and now >= self._until
        if is_over or (not self.is_open and self._is_too_much()):
            self._open(now)

    def give_up(self, *, trial: bool) -> None:
        """The request ended without telling anything of the engine: the client left."""
        if trial:
            self._next_trial = 0.0

    def checked(self, now: float, *, healthy: bool) -> None:
        """What /health said. A node that was down comes back as half open, for requests to prove it."""
        if healthy:
            self._missed = 0
            if self.is_down:
                self._come_back(now)
            return
        self._missed += 1
        if self._missed >= MISSED_CHECKS and not self.is_down:
            self.is_down = True
            if not self.is_open:
                self._open(now)

    def _is_too_much(self) -> bool:
        if self._run >= RUN_OF_FAILURES:
            return True
        return self._requests >= LEAST_REQUESTS and self._failures >= self._requests * SHARE_OF_FAILURES

    def _come_back(self, now: float) -> None:
        self.is_down = False
        self._until = now

    def _open(self, now: float) -> None:
        self.is_open = True
        lasts_s = FIRST_EJECTION_S * 2 ** min(self._ejections, _MOST_DOUBLINGS)
        self._until = now + min(lasts_s, LONGEST_EJECTION_S)
        self._ejections += 1

    def _close(self) -> None:
        self.is_open = False
        self._ejections = 0
        self._requests = self._failures = 0

    def _begin_window(self, now: float) -> None:
        self._began = now
        self._requests = self._failures = 0
