"""Which failures are tried again: only before the first byte, and only so often that retries can't become the load."""

from typing import Final

from gateway.errors import (
    EngineBusy,
    EngineDropped,
    EngineFailed,
    EngineFault,
    EngineLostVersion,
    EngineUnreachable,
    VersionMismatch,
)

# The engine has done nothing with the request: to try again costs nobody anything.
UNTOUCHED: Final = (EngineUnreachable, EngineLostVersion)
# It may have worked on it. A completion changes nothing at the engine, so that another may be asked; but the request
# may also be what makes engines fail, so it isn't tried on one after the other.
_ELSEWHERE: Final = (EngineBusy, EngineFailed, VersionMismatch)

_EARNED: Final = 0.2
_AT_FIRST: Final = 10.0
_MOST: Final = 100.0


class RetryBudget:
    """At most one retry for five requests, over time, and a hundred in one go: after Finagle's retry budgets."""

    __slots__ = ("_earned", "_left", "_most")

    def __init__(self, *, earned: float = _EARNED, at_first: float = _AT_FIRST, most: float = _MOST) -> None:
        """Begin with a few, so that the first requests of a process may be tried again as well."""
        self._earned = earned
        self._left = at_first
        self._most = most

    def earn(self) -> None:
        """A request began."""
        if self._left < self._most:
            self._left += self._earned

    def spend(self) -> bool:
        """Whether one more request may be tried again; counts it if so."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


def may_be_sent_again(error: EngineFault, *, others: int, sent_again: bool) -> bool:
    """Whether a request that an engine may have worked on can be sent once more.

    `others` is how many more nodes could answer it; `sent_again`: it was already. A connection that was dropped may
    have been idle too long, so the same node will do then.
    """
    if sent_again:
        return False
    return isinstance(error, EngineDropped) or (isinstance(error, _ELSEWHERE) and others > 0)
