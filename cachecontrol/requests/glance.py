"""How requests went in the last hour, beside the same hour of the day before, out of the request records."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from registry.actors import Actor
from registry.permissions import Action, require_on_platform, sees_all_tenants

HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
SLICE: Final = timedelta(minutes=5)
# It is told at a glance or not at all.
_LIMIT_MS: Final = 500

_REQUESTS: Final = """
SELECT at < %(since)s, date_bin(%(slice)s, CASE WHEN at < %(since)s THEN at + %(day)s ELSE at END, %(since)s),
       count(*), count(*) FILTER (WHERE tier IN ('gpu', 'cpu')),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY ttft_ms) FILTER (WHERE ttft_ms > 0)
FROM gateway_request
WHERE NOT is_shadow AND (at >= %(since)s AND at < %(until)s OR at >= %(since)s - %(day)s AND at < %(until)s - %(day)s)
      AND (%(all)s OR tenant IN (SELECT name FROM registry_tenant WHERE id = ANY (%(tenants)s)))
GROUP BY GROUPING SETS ((1, 2), (1))
"""


@dataclass(frozen=True, slots=True)
class Going:
    """Some requests: how many, the share whose version was in an engine already, and their 95th percentile to a byte.

    A share and a time that no request tells are None.
    """

    requests: int = 0
    hit_rate: float | None = None
    ttft_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Glance:
    """The last hour and the same of the day before; ``course`` has each slice of it with both."""

    now: Going
    before: Going
    course: tuple[tuple[datetime, Going, Going], ...]


def glance(*, actor: Actor, now: datetime) -> Glance | None:
    """Of the tenants that ``actor`` belongs to, for a platform admin of all; None if it can't be told quickly."""
    require_on_platform(actor, Action.VIEW_PLATFORM)
    since = now - HOUR
    inputs: dict[str, Any] = {
        "since": since,
        "until": now,
        "day": _DAY,
        "slice": SLICE,
        "all": sees_all_tenants(actor),
        "tenants": list(actor.roles),
    }
    rows = _read(inputs)
    if rows is None:
        return None
    known = {(is_before, at): _going(rest) for is_before, at, *rest in rows}
    times = [since + SLICE * number for number in range(HOUR // SLICE)]
    return Glance(
        now=known.get((False, None), Going()),
        before=known.get((True, None), Going()),
        course=tuple((at, known.get((False, at), Going()), known.get((True, at), Going())) for at in times),
    )


def _read(inputs: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {_LIMIT_MS}")
            cursor.execute(_REQUESTS, inputs)
            return list(cursor.fetchall())
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise


def _going(row: Sequence[Any]) -> Going:
    requests, hits, ttft_ms = row
    return Going(requests, hits / requests if requests else None, ttft_ms)
