"""What a tenant asked for and what it got: amounts, cost, failures, times and hits, out of the request records."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from cachecontrol.requests.period import Period
from registry.errors import InvalidInput
from registry.models import Tenant

# Of the largest groups at most so many are told.
MOST_GROUPS: Final = 1000
# Every request of the time is counted anew: for longer than this no question may keep the database at it.
_LIMIT_MS: Final = 15_000

# Milliseconds are whole and few differ, so that requests are counted by them and percentiles need no sorting of rows:
# the smallest time that a share of the requests didn't exceed.
_USAGE: Final = """
WITH counted AS (
    SELECT {key} AS key, CASE WHEN ttft_ms > 0 THEN ttft_ms END AS ttft_ms,
           count(*) AS requests,
           count(*) FILTER (WHERE gateway_request_failed(error_kind, status)) AS failed,
           count(*) FILTER (WHERE fallback <> '') AS fallbacks,
           coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
           coalesce(sum(completion_tokens), 0) AS completion_tokens,
           sum(engine_ms) AS engine_ms,
           count(*) FILTER (WHERE tier = 'gpu') AS gpu, count(*) FILTER (WHERE tier = 'cpu') AS cpu,
           count(*) FILTER (WHERE tier = 'disk') AS disk, count(*) FILTER (WHERE tier = 'remote') AS remote,
           0 AS shadow_requests, 0 AS shadow_engine_ms
    FROM gateway_request
    WHERE tenant = %(tenant)s AND at >= %(since)s AND at < %(until)s AND NOT is_shadow
    GROUP BY 1, 2
    UNION ALL
    SELECT {key}, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, count(*), sum(engine_ms)
    FROM gateway_request
    WHERE tenant = %(tenant)s AND at >= %(since)s AND at < %(until)s AND is_shadow
    GROUP BY 1
), told AS (
    SELECT false AS is_total, * FROM counted UNION ALL SELECT true, {nothing}, {columns} FROM counted
), ranked AS (
    SELECT *, sum(requests) FILTER (WHERE ttft_ms IS NOT NULL) OVER (PARTITION BY is_total, key) AS timed,
           sum(requests) FILTER (WHERE ttft_ms IS NOT NULL)
               OVER (PARTITION BY is_total, key ORDER BY ttft_ms NULLS LAST) AS reached
    FROM told
), summed AS (
    SELECT is_total, key, sum(requests) AS requests, sum(failed), sum(fallbacks), sum(prompt_tokens),
           sum(completion_tokens), sum(engine_ms) AS engine_ms, sum(gpu), sum(cpu), sum(disk), sum(remote),
           sum(shadow_requests), sum(shadow_engine_ms),
           min(ttft_ms) FILTER (WHERE reached >= 0.5 * timed),
           min(ttft_ms) FILTER (WHERE reached >= 0.95 * timed),
           min(ttft_ms) FILTER (WHERE reached >= 0.99 * timed)
    FROM ranked GROUP BY is_total, key
)
SELECT s.*, {name}, count(*) OVER () AS every
FROM summed s {named}
ORDER BY is_total DESC, {order} LIMIT %(most)s
"""
_NAMED_VERSION: Final = """
LEFT JOIN registry_version v ON v.id = s.key LEFT JOIN registry_adapter a ON a.id = v.adapter_id
"""


class UsageBy(StrEnum):
    """What usage is broken down by. A day is one of UTC."""

    ALIAS = "alias"
    VERSION = "version"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFigures:
    """Figures of some requests; times in milliseconds.

    ``engine_ms`` is what they cost: the time that engines spent on them. ``tiers`` counts where versions were when
    requests for them came; ``ttft_ms`` are percentiles (50, 95, 99) of those that got a first byte, none without any.
    What was mirrored to a candidate is told apart, since no client asked for it.
    """

    requests: int
    failed: int
    fallbacks: int
    prompt_tokens: int
    completion_tokens: int
    engine_ms: int
    tiers: Mapping[str, int]
    ttft_ms: tuple[int, int, int] | None
    shadow_requests: int
    shadow_engine_ms: int


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """The whole, and the largest of its groups by name; the name is empty where requests came to none."""

    total: UsageFigures
    groups: tuple[tuple[str, UsageFigures], ...]
    left_out: int


NOTHING: Final = UsageFigures(
    requests=0,
    failed=0,
    fallbacks=0,
    prompt_tokens=0,
    completion_tokens=0,
    engine_ms=0,
    tiers=dict.fromkeys(("gpu", "cpu", "disk", "remote"), 0),
    ttft_ms=None,
    shadow_requests=0,
    shadow_engine_ms=0,
)


def usage_of(*, tenant: Tenant, period: Period, by: UsageBy) -> TenantUsage:
    """What the tenant used in the period; the caller has checked the permission.

    Raises ``InvalidInput`` when there is too much in it to be counted at once.
    """
    span = {"since": period.since, "until": period.until}
    rows = _rows(_STATEMENTS[by], {"tenant": tenant.name, **span, "most": MOST_GROUPS + 1})
    if not rows:
        return TenantUsage(NOTHING, (), 0)
    total, *groups = rows
    named = tuple((str(row[-2]), _figures(row)) for row in groups)
    return TenantUsage(_figures(total), named, left_out=total[-1] - 1 - len(named))


def _rows(statement: str, inputs: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {_LIMIT_MS}")
            cursor.execute(statement, inputs)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        raise InvalidInput(_("That is too much to count at once. Ask for fewer days."), field="since") from error
    return rows


def _figures(row: tuple[Any, ...]) -> UsageFigures:
    numbers = [int(value) for value in row[2:14]]
    requests, failed, fallbacks, prompt, completion, engine_ms, gpu, cpu, disk, remote, shadows, shadow_ms = numbers
    return UsageFigures(
        requests=requests,
        failed=failed,
        fallbacks=fallbacks,
        prompt_tokens=prompt,
        completion_tokens=completion,
        engine_ms=engine_ms,
        tiers={"gpu": gpu, "cpu": cpu, "disk": disk, "remote": remote},
        ttft_ms=None if row[14] is None else (int(row[14]), int(row[15]), int(row[16])),
        shadow_requests=shadows,
        shadow_engine_ms=shadow_ms,
    )


_COUNTED: Final = (
    "ttft_ms, requests, failed, fallbacks, prompt_tokens, completion_tokens, engine_ms, gpu, cpu, disk, remote,"
    " shadow_requests, shadow_engine_ms"
)
_LARGEST: Final = "engine_ms DESC, requests DESC, key"


def _statement(*, key: str, nothing: str = "''", name: str = "s.key", named: str = "", order: str = _LARGEST) -> str:
    return _USAGE.format(key=key, nothing=nothing, name=name, named=named, order=order, columns=_COUNTED)


_STATEMENTS: Final[dict[UsageBy, str]] = {
    UsageBy.ALIAS: _statement(key="alias"),
    UsageBy.VERSION: _statement(
        key="version_id",
        nothing="NULL::uuid",
        name="coalesce(a.name || '@' || v.name, '')",
        named=_NAMED_VERSION,
    ),
    UsageBy.DAY: _statement(key="(at AT TIME ZONE 'UTC')::date", nothing="NULL::date", order="key"),
}
