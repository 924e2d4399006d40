"""Where the slices of a step's window lie, and when they are complete."""

from datetime import datetime, timedelta
from typing import Final

# A gateway writes its records every second; a slice is complete when those that ended in it are all written.
RECORDS_COME_WITHIN: Final = timedelta(seconds=3)


def whole_slices(since: datetime, *, slice_s: float, now: datetime) -> int:
    """How many slices of the window that began at ``since`` are complete at ``now``."""
    return max(0, int((now - RECORDS_COME_WITHIN - since) / timedelta(seconds=slice_s)))


def end_of(since: datetime, *, slice_s: float, count: int) -> datetime:
    """Where the first ``count`` slices end."""
    return since + timedelta(seconds=slice_s) * count
