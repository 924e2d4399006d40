"""Reading the figures of the fleet: each a query over a bounded part of a table, all of them under one time limit."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Count, Max, Q
from django.utils import timezone

from cachecontrol.metrics import QUANTILES, FleetFigures, Traffic, Usage
from cachecontrol.models import Eviction, LoadRequest, Node, Residency
from cachecontrol.policies import active_policies, quota_usage
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.quotas import Resource
from cachecontrol.services.sizes import sizes_of
from cachecontrol.states import EngineKind, EvictionReason, LoadState, Observed, Tier
from registry.base_models.description import BaseDescription, DescriptionError
from registry.base_models.modules import base_modules
from registry.base_models.slots import vllm_slot_bytes
from registry.models import BaseModel, BaseModelRevision

logger = logging.getLogger(__name__)

# Of the window's requests, as many of the newest as this at most: more would say nothing else, and cost more.
MOST_REQUESTS: Final = 50_000
_LIMIT_MS: Final = 5000
# By then a transaction that began has ended, so that nothing with a smaller number comes any more.
_SETTLED_AFTER: Final = timedelta(minutes=10)
_MINUTE: Final = timedelta(minutes=1)
# What a gateway mirrors is nothing that a client waits for.
_REQUESTS: Final = """
WITH recent AS MATERIALIZED (
    SELECT r.tenant, a.name AS adapter, r.tier, r.ttft_ms, r.total_ms, r.load_ms,
           gateway_request_failed(r.error_kind, r.status) AS has_failed
    FROM (
        SELECT * FROM gateway_request WHERE at > %(since)s AND NOT is_shadow ORDER BY at DESC LIMIT %(requests)s
    ) r
    LEFT JOIN registry_version v ON v.id = r.version_id
    LEFT JOIN registry_adapter a ON a.id = v.adapter_id
), adapters AS (
    SELECT tenant, adapter FROM recent WHERE adapter IS NOT NULL
    GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT %(most)s
), tenants AS (
    SELECT tenant FROM recent GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT %(most)s
), named AS (
    SELECT 'adapter' AS kind, coalesce(t.tenant, '_other') AS name, coalesce(t.adapter, '_other') AS adapter,
           has_failed, ttft_ms, total_ms, load_ms
    FROM recent r LEFT JOIN adapters t USING (tenant, adapter) WHERE r.adapter IS NOT NULL
    UNION ALL
    SELECT 'tenant', coalesce(t.tenant, '_other'), '', has_failed, ttft_ms, total_ms, load_ms
    FROM recent LEFT JOIN tenants t USING (tenant)
    UNION ALL
    SELECT 'tier', tier, '', has_failed, ttft_ms, total_ms, load_ms FROM recent
    WHERE tier IN ('gpu', 'cpu', 'disk', 'remote')
)
SELECT kind, name, adapter, count(*), count(*) FILTER (WHERE has_failed),
       percentile_cont(%(quantiles)s::float8[]) WITHIN GROUP (ORDER BY ttft_ms) FILTER (WHERE ttft_ms > 0),
       percentile_cont(%(quantiles)s::float8[]) WITHIN GROUP (ORDER BY total_ms) FILTER (WHERE kind = 'tenant'),
       percentile_cont(%(quantiles)s::float8[]) WITHIN GROUP (ORDER BY load_ms)
           FILTER (WHERE kind = 'tier' AND load_ms > 0)
FROM named GROUP BY 1, 2, 3
"""


@dataclass(slots=True)
class EvictionCount:
    """How many evictions there ever were, by tier and reason: those that are long over are counted once.

    They are numbered before their transactions commit, so that the newest are counted anew each time.
    """

    _settled: dict[tuple[str, str], int] = field(default_factory=dict)
    _up_to: int = 0

    def read(self, *, now: datetime) -> dict[tuple[str, str], int]:
        newer = Eviction.objects.filter(pk__gt=self._up_to)
        up_to = newer.filter(at__lt=now - _SETTLED_AFTER).aggregate(pk=Max("pk"))["pk"]
        if up_to is not None:
            self._settled = _added(self._settled, newer.filter(pk__lte=up_to))
            self._up_to = up_to
        known = {(tier.value, reason.value): 0 for tier in Tier for reason in EvictionReason}
        return known | _added(self._settled, Eviction.objects.filter(pk__gt=self._up_to))


@dataclass(slots=True)
class FigureReader:
    """Reads them again and again; keeps what never changes. Not for several threads at once."""

    window: timedelta
    most: int
    _evictions: EvictionCount = field(default_factory=EvictionCount)
    _slot_bytes: dict[tuple[int, int], int] = field(default_factory=dict)

    def read(self) -> FleetFigures:
        """The figures as of now. Raises ``django.db.DatabaseError``, also when a query takes too long."""
        now = timezone.now()
        since = now - self.window
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {_LIMIT_MS}")
            traffic = read_traffic(since=since, most=self.most)
            return FleetFigures(
                window_s=self.window.total_seconds(),
                tiers={name: each for (kind, name, _), each in traffic.items() if kind == "tier"},
                tenants={name: each for (kind, name, _), each in traffic.items() if kind == "tenant"},
                adapters={(name, adapter): each for (kind, name, adapter), each in traffic.items() if adapter},
                loads_ms=read_loads(since=since),
                evictions=self._evictions.read(now=now),
                mismatches=dict(Node.objects.values_list("name", "mismatches")),
                gpu_bytes=self._gpu_bytes(),
                usages=tuple(read_usages(now=now)),
            )

    def _gpu_bytes(self) -> dict[str, int]:
        """What vLLM sets aside for its slots; of other engines, the files of what the plan counts as in a slot."""
        nodes = list(Node.objects.values_list("name", "engine_kind", "gpu_slots", "max_rank", "base_revision_id"))
        known = {(revision, rank) for _, kind, _, rank, revision in nodes if kind == EngineKind.VLLM}
        self._learn(known - self._slot_bytes.keys())
        used = _hot_bytes()
        return {
            name: slots * self._slot_bytes[revision, rank] if kind == EngineKind.VLLM else used.get(name, 0)
            for name, kind, slots, rank, revision in nodes
        }

    def _learn(self, unknown: set[tuple[int, int]]) -> None:
        """Descriptions of bases are large and never change: each is read once."""
        for revision in BaseModelRevision.objects.filter(pk__in={pk for pk, _ in unknown}):
            ranks = {rank for pk, rank in unknown if pk == revision.pk}
            for rank, size in _slot_bytes(revision, ranks).items():
                self._slot_bytes[revision.pk, rank] = size


def _slot_bytes(revision: BaseModelRevision, ranks: Iterable[int]) -> dict[int, int]:
    """By largest rank; 0 where the base's tensors are not known, since one base must not hide all other figures."""
    try:
        base = BaseDescription.from_json(revision.description)
        modules = base_modules(base)
    except DescriptionError:
        logger.exception("%s: how large its slots are can't be told", revision)
        return dict.fromkeys(ranks, 0)
    return {rank: vllm_slot_bytes(modules, base, max_rank=rank) for rank in ranks}


def read_traffic(*, since: datetime, most: int) -> dict[tuple[str, str, str], Traffic]:
    """By ``adapter``, ``tenant`` or ``tier``, its name, and the adapter's name; ``most`` of adapters and tenants."""
    inputs: dict[str, Any] = {"since": since, "most": most, "requests": MOST_REQUESTS, "quantiles": list(QUANTILES)}
    with connection.cursor() as cursor:
        cursor.execute(_REQUESTS, inputs)
        return {(kind, name, adapter): _traffic(rest) for kind, name, adapter, *rest in cursor.fetchall()}


def read_loads(*, since: datetime) -> tuple[int, ...]:
    """Milliseconds of the loads into engines that ended since then, and are still in force."""
    ended = Residency.objects.filter(observed=Observed.LOADED.value, state_changed_at__gt=since, load_ms__isnull=False)
    return tuple(ms for ms in ended.values_list("load_ms", flat=True) if ms is not None)


def read_usages(*, now: datetime) -> Iterable[Usage]:
    """What each tenant has of the nodes of each base model that has some, and how much it may."""
    names = dict(BaseModel.objects.values_list("pk", "name"))
    loads = _loads(now=now)
    for base_model_id, policy in active_policies().items():
        used: Mapping[str, Mapping[Resource, int]] = quota_usage(base_model_id=base_model_id)
        base_model = names[base_model_id]
        for tenant in sorted({*used, *policy.document.quotas.tenants}):
            yield from _held(tenant, base_model, policy, used.get(tenant, {}))
        for (tenant, of), (begun, queued) in loads.items():
            if of == base_model:
                limit = policy.quotas.of(tenant).loads_per_minute
                yield Usage(tenant, base_model, "loads_per_minute", begun, ceiling=limit)
                yield Usage(tenant, base_model, "queued_loads", queued)


def _held(tenant: str, base_model: str, policy: PolicyInForce, used: Mapping[Resource, int]) -> Iterable[Usage]:
    for resource in Resource:
        bounds = policy.quotas.of(tenant).of(resource)
        yield Usage(tenant, base_model, resource.value, used.get(resource, 0), bounds.floor, bounds.ceiling)


def _loads(*, now: datetime) -> dict[tuple[str, str], tuple[int, int]]:
    """By tenant and base model, how many loads began within a minute and how many wait."""
    recent = Q(placed_at__gt=now - _MINUTE) | Q(state=LoadState.QUEUED.value)
    rows = LoadRequest.objects.filter(recent).values_list("tenant__name", "version__base_revision__base_model__name")
    counted = rows.annotate(
        begun=Count("pk", filter=Q(placed_at__gt=now - _MINUTE)),
        queued=Count("pk", filter=Q(state=LoadState.QUEUED.value)),
    )
    return {(tenant, base_model): (begun, queued) for tenant, base_model, begun, queued in counted}


def _hot_bytes() -> dict[str, int]:
    hot = Residency.objects.filter(is_hot=True).exclude(node__engine_kind=EngineKind.VLLM.value)
    rows = list(hot.values_list("node__name", "version_id"))
    sizes = sizes_of({version for _, version in rows})
    found: dict[str, int] = {}
    for node, version in rows:
        found[node] = found.get(node, 0) + sizes[version]
    return found


def _added(counts: Mapping[tuple[str, str], int], rows: Any) -> dict[tuple[str, str], int]:  # noqa: ANN401  a query set
    found = dict(counts)
    for tier, reason, number in rows.order_by().values_list("tier", "reason").annotate(number=Count("pk")):
        found[tier, reason] = found.get((tier, reason), 0) + number
    return found


def _traffic(row: Sequence[Any]) -> Traffic:
    requests, failed, ttft_ms, total_ms, load_ms = row
    return Traffic(requests, failed, ttft_ms or (), total_ms or (), load_ms or ())
