from datetime import UTC, datetime, timedelta

import pytest

from releases.steering.windows import RECORDS_COME_WITHIN, end_of, whole_slices

SINCE = datetime(2026, 7, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(("after_s", "count"), [(0, 0), (19.9, 0), (20, 1), (39.9, 1), (40, 2), (-60, 0)])
def test_a_slice_is_complete_when_its_records_have_come(after_s: float, count: int) -> None:
    now = SINCE + RECORDS_COME_WITHIN + timedelta(seconds=after_s)
    assert whole_slices(SINCE, slice_s=20.0, now=now) == count


def test_slices_follow_on_each_other() -> None:
    assert end_of(SINCE, slice_s=2.5, count=4) == SINCE + timedelta(seconds=10)
