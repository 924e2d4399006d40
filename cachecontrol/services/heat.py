"""Counting what gateways recorded into heat: how much each version and each tenant is asked for. Exactly once.

A record belongs to the transaction that wrote it. Those of transactions below the oldest one that still runs are all
there; the cursor says up to which of them everything was counted. Records of gateways that commit late or out of order
are therefore neither missed nor counted twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from cachecontrol.models import HeatCursor, Residency, TenantHeat, VersionHeat
from cachecontrol.policies import active_policies
from cachecontrol.scoring.rates import add_hits
from cachecontrol.scoring.settings import ScoringSettings
from registry.models import Version

# So many records at most in one pass; the next one goes on.
_BATCH: Final = 50_000
_BUCKET_S: Final = 5
# How exactly the last use of a residency is kept.
_USE_PRECISION: Final = timedelta(seconds=1)

# A database that was restored from another one may have a cursor of that one's transactions.
_WINDOW: Final = """
WITH here AS (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS below),
     span AS (SELECT least(%(counted_below)s::text::xid8, below) AS first, below FROM here)
SELECT first::text, coalesce(
    (SELECT r.written_by FROM gateway_request r, span WHERE r.written_by > span.first AND r.written_by < span.below
     ORDER BY r.written_by OFFSET %(batch)s LIMIT 1), below)::text
FROM span
"""
_COUNTS: Final = """
SELECT r.version_id, r.node, to_timestamp(floor(extract(epoch FROM r.at) / %(bucket_s)s) * %(bucket_s)s),
       count(*) FILTER (WHERE NOT r.is_shadow), max(r.at + r.total_ms * interval '1 millisecond')
FROM gateway_request r
WHERE r.written_by >= %(first)s::text::xid8 AND r.written_by < %(below)s::text::xid8 AND r.version_id IS NOT NULL
GROUP BY 1, 2, 3
ORDER BY 3
"""


@dataclass(frozen=True, slots=True)
class _Count:
    """``hits`` requests for a version around ``at``; ``node`` answered them, the last at ``until``.

    What a gateway mirrors uses a version, so that it isn't idle; but nobody has asked for it.
    """

    version_id: UUID
    node: str | None
    at: datetime
    hits: int
    until: datetime


def count_requests() -> int:
    """Count the records that are new; how many there were. Quiet while somebody else counts."""
    counts = _count()
    _note_uses(counts)
    return sum(count.hits for count in counts)


@transaction.atomic
def _count() -> list[_Count]:
    HeatCursor.objects.get_or_create(pk=1)
    cursor = HeatCursor.objects.select_for_update(skip_locked=True).filter(pk=1).first()
    if cursor is None:
        return []
    counts, below = _read(cursor.counted_below)
    if counts:
        _add(counts)
    if below != cursor.counted_below:
        HeatCursor.objects.filter(pk=1).update(counted_below=below)
    return counts


def _read(counted_below: int) -> tuple[list[_Count], int]:
    with connection.cursor() as cursor:
        cursor.execute(_WINDOW, {"counted_below": counted_below, "batch": _BATCH})
        first, below = cursor.fetchone()
        cursor.execute(_COUNTS, {"first": first, "below": below, "bucket_s": _BUCKET_S})
        return [_Count(*row) for row in cursor.fetchall()], int(below)


def _add(counts: list[_Count]) -> None:
    rows = Version.objects.filter(pk__in={count.version_id for count in counts}).values_list(
        "pk", "adapter__tenant_id", "base_revision__base_model_id"
    )
    policies = active_policies()
    usual = ScoringSettings().half_life
    half_lives = {pk: policies[model].scoring.half_life if model in policies else usual for pk, _tenant, model in rows}
    known = [count for count in counts if count.version_id in half_lives and count.hits]
    _add_to_versions(known, half_lives)
    _add_to_tenants(known, {pk: tenant for pk, tenant, _model in rows}, half_lives)


def _add_to_versions(counts: Iterable[_Count], half_lives: dict[UUID, timedelta]) -> None:
    found = VersionHeat.objects.in_bulk(list(half_lives))
    for count in counts:
        heat = found.setdefault(count.version_id, VersionHeat(version_id=count.version_id, as_of=count.at))
        _heat(heat, count, half_lives[count.version_id])
        heat.hits += count.hits
        if count.node is not None:
            heat.last_used_at = max(heat.last_used_at or count.until, count.until)
    VersionHeat.objects.bulk_create(
        found.values(),
        update_conflicts=True,
        unique_fields=["version"],
        update_fields=["rate", "as_of", "hits", "last_used_at"],
    )


def _add_to_tenants(counts: Iterable[_Count], tenants: dict[UUID, int], half_lives: dict[UUID, timedelta]) -> None:
    found = TenantHeat.objects.in_bulk(list(set(tenants.values())))
    for count in counts:
        tenant = tenants[count.version_id]
        heat = found.setdefault(tenant, TenantHeat(tenant_id=tenant, as_of=count.at))
        _heat(heat, count, half_lives[count.version_id])
    TenantHeat.objects.bulk_create(
        found.values(), update_conflicts=True, unique_fields=["tenant"], update_fields=["rate", "as_of"]
    )


def _heat(heat: VersionHeat | TenantHeat, count: _Count, half_life: timedelta) -> None:
    heat.rate, heat.as_of = add_hits(heat.rate, as_of=heat.as_of, hits=count.hits, at=count.at, half_life=half_life)


@transaction.atomic
def _note_uses(counts: Iterable[_Count]) -> None:
    """When each version was last used on each node, and what the node's score clock showed then."""
    uses: dict[tuple[UUID, str], datetime] = {}
    for count in counts:
        if count.node is not None:
            key = (count.version_id, count.node)
            uses[key] = max(uses.get(key, count.until), count.until)
    if not uses:
        return
    held = Residency.objects.filter(
        version__in={version_id for version_id, _node in uses}, node__name__in={node for _version, node in uses}
    )
    # Whoever holds one now is about to change it; who waited for several could wait in a circle.
    free = held.select_for_update(of=("self",), no_key=True, skip_locked=True)
    locked = free.order_by("pk").select_related("node")
    changed = [residency for residency in locked if _is_used(residency, uses)]
    Residency.objects.bulk_update(changed, ["last_used_at", "score_clock"])


def _is_used(residency: Residency, uses: dict[tuple[UUID, str], datetime]) -> bool:
    used_at = uses.get((residency.version_id, residency.node.name))
    if used_at is None:
        return False
    if residency.last_used_at is not None and used_at < residency.last_used_at + _USE_PRECISION:
        return False
    residency.last_used_at, residency.score_clock = used_at, residency.node.score_clock
    return True
