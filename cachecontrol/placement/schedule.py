"""Which entries of a schedule want their version in an engine now."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

# A version is asked for some time before the time stated, so that it is there by then.
LEAD: Final = timedelta(minutes=10)
# So long after that time it is still wanted, whether anybody asks for it or not.
HOLD: Final = timedelta(minutes=30)


class Scheduled(Protocol):
    """An entry that recurs; its times are those of its own time zone (UTC in cache policies)."""

    def last_due(self, now: datetime) -> datetime: ...


Entry = TypeVar("Entry", bound=Scheduled)


def due(
    entries: Iterable[Entry], *, now: datetime, lead: timedelta = LEAD, hold: timedelta = HOLD
) -> tuple[Entry, ...]:
    """The entries whose time is at most ``lead`` ahead or less than ``hold`` past, in their order.

    A state, not an event: asking twice does no harm, and a pass that was missed is made up for by the next one.
    ``now`` has a time zone.
    """
    return tuple(entry for entry in entries if entry.last_due(now + lead) > now - hold)
