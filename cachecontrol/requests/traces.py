"""Requests of the past in the form that ``lorekeeper replay`` reads: who asked for what, and when."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import F, Max, Sum

from cachecontrol.models import Residency
from cachecontrol.requests.period import Period
from registry.actors import Actor
from registry.models import VersionFile
from registry.permissions import Action, require_on_platform

COLUMNS: Final = ("t_s", "tenant", "version", "size_mib", "reload_ms")
Line = tuple[float, str, str, float | None, int | None]

_AT_ONCE: Final = 10_000
_MIB: Final = 1024 * 1024
# Page by page along the key: a cursor would hold a transaction open for as long as the slowest reader reads.
_ROWS: Final = """
SELECT r.at, r.request_id, r.version_id, r.tenant, a.name || '@' || v.name, m.name
FROM (
    SELECT at, request_id, tenant, version_id FROM gateway_request
    WHERE (at, request_id) > (%s, %s) AND at < %s AND version_id IS NOT NULL AND NOT is_shadow
    ORDER BY at, request_id LIMIT %s
) r
LEFT JOIN registry_version v ON v.id = r.version_id LEFT JOIN registry_adapter a ON a.id = v.adapter_id
LEFT JOIN registry_basemodelrevision b ON b.id = v.base_revision_id
LEFT JOIN registry_basemodel m ON m.id = b.base_model_id
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class _Row:
    """A request as it is read; the names are none where the version isn't known."""

    at: datetime
    request_id: str
    version_id: UUID
    tenant: str
    version: str | None
    base_model: str | None


def trace_requests(*, actor: Actor, period: Period, base_model: str | None = None) -> Iterator[Line]:
    """One line per request for a version (of that base model, if one is named), the oldest first.

    Seconds are counted from the beginning of the period. What a version weighs (MiB), and how long it last took to
    bring it into an engine, stand in its first line alone.
    """
    require_on_platform(actor, Action.VIEW_CACHE_POLICY)
    return _lines(period, base_model)


def _lines(period: Period, base_model: str | None) -> Iterator[Line]:
    told: set[UUID] = set()
    for page in _pages(period):
        wanted = [row for row in page if row.version and base_model in (None, row.base_model)]
        costs = _costs({row.version_id for row in wanted} - told)
        for row in wanted:
            size, reload_ms = costs.pop(row.version_id, (None, None))
            yield ((row.at - period.since).total_seconds(), row.tenant, row.version or "", size, reload_ms)
        told |= {row.version_id for row in wanted}


def _pages(period: Period) -> Iterator[list[_Row]]:
    at, request_id = period.since, ""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_ROWS, [at, request_id, period.until, _AT_ONCE])
            page = [_Row(*row) for row in cursor.fetchall()]
        yield page
        if len(page) < _AT_ONCE:
            return
        at, request_id = page[-1].at, page[-1].request_id


def _costs(version_ids: set[UUID]) -> dict[UUID, tuple[float | None, int | None]]:
    """By version, how many MiB it weighs and how many milliseconds it last took to bring it into an engine."""
    files = VersionFile.objects.filter(version__in=version_ids).order_by().values_list("version_id")
    sizes = dict(files.annotate(size=Sum("artifact__size")))
    held = Residency.objects.filter(version__in=version_ids).order_by().values_list("version_id")
    loads = dict(held.annotate(ms=Max(F("load_ms") + F("fetch_ms"))))
    return {each: (round(sizes.get(each, 0) / _MIB, 3) or None, loads.get(each)) for each in version_ids}
