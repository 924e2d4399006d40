from datetime import UTC, datetime, timedelta

from cachecontrol.placement.schedule import due
from cachecontrol.policy.tenants import ScheduledPrewarm

ENTRY = ScheduledPrewarm(at="07:30", tenant="acme", adapter="support", alias="live")
DAY = datetime(2026, 7, 1, tzinfo=UTC)


def test_an_entry_is_due_from_its_lead_until_it_has_been_held() -> None:
    times = {f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(0, 60, 10) if _is_due(hour, minute)}
    assert times == {"07:20", "07:30", "07:40", "07:50"}


def _is_due(hour: int, minute: int) -> bool:
    return due([ENTRY], now=DAY + timedelta(hours=hour, minutes=minute)) == (ENTRY,)


def test_a_lead_reaches_into_the_day_before() -> None:
    early = ENTRY.model_copy(update={"at": "00:05"})
    assert due([early], now=DAY - timedelta(minutes=4)) == (early,)
