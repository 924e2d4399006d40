"""The days of request records: made ahead, and dropped when they have been kept for long enough.

The application's role owns no table: it calls two functions that can do this and nothing else.
"""

import logging
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from cachecontrol import events
from cachecontrol.requests.days import days_in, first_kept_day, missing_days
from cachecontrol.services.leases import take_lease
from registry.actors import Actor

logger = logging.getLogger(__name__)

_TABLES: Final = ("gateway_request", "gateway_shadow", "gateway_feedback")
_EVERY: Final = timedelta(minutes=10)
_NAMES: Final = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass
"""


def tend_request_records(*, actor: Actor) -> None:
    """Make the days that are missing and drop those that are over, if nobody has looked lately.

    A table that is busy just now is left to the next time.
    """
    if not take_lease("tend request records", lasts=_EVERY):
        return
    today = timezone.now().astimezone(UTC).date()
    for table in _TABLES:
        try:
            _tend(table, actor=actor, today=today)
        except DatabaseError as error:
            logger.warning("the days of %s are left to the next sweep: %s", table, error)


def _tend(table: str, *, actor: Actor, today: date) -> None:
    held = _days_held(table)
    for day in missing_days(held, today=today):
        _call("gateway_records_make_day", table, day)
    first = first_kept_day(today=today, keep_days=settings.REQUEST_RECORD_DAYS)
    over = [day for day in held if day < first]
    if over or _has_strays(table, before=first):
        _drop(table, over, before=first, actor=actor)


@transaction.atomic
def _drop(table: str, over: list[date], *, before: date, actor: Actor) -> None:
    if over:
        # Said first: who reads or writes waits from the drop on until the transaction ends.
        events.request_records_dropped(actor=actor, table=table, days=over)
    _call("gateway_records_drop_before", table, before)


def _days_held(table: str) -> list[date]:
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, [table])
        return days_in(name for (name,) in cursor.fetchall())


def _has_strays(table: str, *, before: date) -> bool:
    """Whether there is anything from before that day, in a day's table or in none."""
    since = datetime(before.year, before.month, before.day, tzinfo=UTC)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM {table} WHERE at < %s)", [since])  # noqa: S608  one of three names
        return bool(cursor.fetchone()[0])


def _call(function: str, table: str, day: date) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [table, day])
