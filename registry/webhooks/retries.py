"""When an attempt that failed is made again. Pure."""

from datetime import datetime, timedelta
from typing import Final

# After the first failure; each further pause is three times as long, up to the longest.
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(hours=3)
# A delivery that has not got through in so long is parked: nobody tries it again but by hand.
PATIENCE: Final = timedelta(days=1)
# A receiver may ask for more time than that, but not for ever.
LONGEST_ASKED: Final = timedelta(hours=1)
# Pauses differ by up to this share either way, so that what failed together does not come back together.
JITTER: Final = 0.2
_FACTOR: Final = 3
# From here on every pause is the longest one, and powers need not grow.
_MOST_STEPS: Final = 12


def next_try(
    *, tries: int, since: datetime, now: datetime, draw: float, asked: timedelta | None = None
) -> datetime | None:
    """When to try again; None: it is parked.

    Args:
        tries: attempts so far, all of them failed.
        since: when the delivery was made.
        now: the time of the last failure.
        draw: a number of [0, 1), chosen at random.
        asked: how long the receiver asked to be left alone.

    """
    pause = min(FIRST_PAUSE * _FACTOR ** min(tries - 1, _MOST_STEPS), LONGEST_PAUSE)
    pause *= 1 + JITTER * (2 * draw - 1)
    if asked is not None:
        pause = max(pause, min(asked, LONGEST_ASKED))
    at = now + pause
    return at if at <= since + PATIENCE else None
