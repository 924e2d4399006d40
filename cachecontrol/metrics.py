"""The figures of the cache as Prometheus families, under the names that DESIGN.md fixes. Pure.

The library adds ``_total`` to the names of counters, which would be other names: what only grows here is of type
"untyped", which ``rate()`` takes as well. Each label has a bounded set of values: see ``bounded``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from prometheus_client.core import GaugeHistogramMetricFamily, GaugeMetricFamily, Metric, UntypedMetricFamily

HIT_RATE: Final = "adapter_cache_hit_rate"
LOAD_LATENCY: Final = "adapter_load_latency_ms"
GPU_MEMORY: Final = "adapter_gpu_memory_mb"
EVICTIONS: Final = "adapter_eviction_count"
MISMATCHES: Final = "adapter_version_mismatch"
QUOTA_USAGE: Final = "per_tenant_adapter_quota_usage"
TTFT: Final = "ttft_by_adapter"
ERROR_RATE: Final = "error_rate_by_adapter"
NAMES: Final = (HIT_RATE, LOAD_LATENCY, GPU_MEMORY, EVICTIONS, MISMATCHES, QUOTA_USAGE, TTFT, ERROR_RATE)

MISS_RATE: Final = "adapter_cache_miss_rate"
COLD_LATENCY: Final = "adapter_cold_load_latency_ms"
TENANT_LATENCY: Final = "per_tenant_latency_ms"

# What is beyond the bound of a label's values. No tenant, adapter or node can have this name.
OTHERS: Final = "_other"
TIERS: Final = ("gpu", "cpu", "disk", "remote")
MISSES: Final = ("disk", "remote")
QUANTILES: Final = (0.5, 0.95, 0.99)
# Milliseconds.
LOAD_BUCKETS: Final = (10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 30_000.0, 120_000.0)

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of the window; times in milliseconds, one for each of ``QUANTILES``, none where nothing was measured.

    ``ttft_ms`` goes from a request's arrival at the gateway to the first byte of its answer, ``total_ms`` to the last;
    ``load_ms`` is how long requests that had to wait for a load waited for it.
    """

    requests: int
    failed: int
    ttft_ms: Sequence[float] = ()
    total_ms: Sequence[float] = ()
    load_ms: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tenant has of one resource of a base model's nodes; ``ceiling`` None: no limit."""

    tenant: str
    base_model: str
    resource: str
    used: float
    floor: float = 0
    ceiling: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFigures:
    """Everything that the database knows; the same whichever process asks.

    Attributes:
        window_s: over how many seconds rates and times are taken.
        tiers: by where the version was when its request came.
        adapters: by tenant and adapter.
        tenants: by tenant.
        loads_ms: how long each load into an engine took that ended in the window.
        evictions: since ever, by tier and reason.
        mismatches: since ever, by node.
        gpu_bytes: by node.
        usages: of every tenant that has something.

    """

    window_s: float
    tiers: Mapping[str, Traffic] = field(default_factory=dict)
    adapters: Mapping[tuple[str, str], Traffic] = field(default_factory=dict)
    tenants: Mapping[str, Traffic] = field(default_factory=dict)
    loads_ms: Sequence[float] = ()
    evictions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    mismatches: Mapping[str, int] = field(default_factory=dict)
    gpu_bytes: Mapping[str, int] = field(default_factory=dict)
    usages: Sequence[Usage] = ()


def families(figures: FleetFigures, *, most: int) -> Iterator[Metric]:
    """The families of the fleet, with at most ``most`` nodes and tenants by name."""
    yield from _hits(figures)
    yield load_latency(figures.loads_ms, f"Time of each load into an engine that ended within {figures.window_s:g} s.")
    yield gpu_memory(
        bounded(figures.gpu_bytes, most=most, rank=int, add=sum),
        "GPU memory of a node for adapters, in MB (10^6 bytes): what its slots set aside, or what is in them.",
    )
    yield evictions(figures.evictions, "Versions that went to a lower tier, by the tier they left and why.")
    yield mismatches(
        bounded(figures.mismatches, most=most, rank=int, add=sum),
        "How often an engine had a version from another path than its own.",
    )
    yield from _quotas(figures.usages, most=most)
    yield from _by_adapter(figures)
    yield from _by_tenant(figures)


def bounded(
    values: Mapping[str, Value], *, most: int, rank: Callable[[Value], float], add: Callable[[list[Value]], Value]
) -> dict[str, Value]:
    """The ``most`` entries that rank highest, and all others added up as ``OTHERS``."""
    names = sorted(values, key=lambda name: (-rank(values[name]), name))
    kept = {name: values[name] for name in names[:most]}
    rest = [values[name] for name in names[most:]]
    return kept | ({OTHERS: add(rest)} if rest else {})


def hit_rate(shares: Mapping[str, float], help_text: str) -> Metric:
    """``shares`` by tier; a tier that isn't there has none."""
    family = GaugeMetricFamily(HIT_RATE, help_text, labels=["tier"])
    for tier in TIERS:
        family.add_metric([tier], shares.get(tier, 0.0))
    return family


def load_latency(loads_ms: Iterable[float], help_text: str) -> Metric:
    """A histogram of the loads of a window: it is no counter, and is taken as it is."""
    family = GaugeHistogramMetricFamily(LOAD_LATENCY, help_text)
    known = sorted(loads_ms)
    buckets = [(str(bound), float(sum(each <= bound for each in known))) for bound in LOAD_BUCKETS]
    family.add_metric([], buckets=[*buckets, ("+Inf", float(len(known)))], gsum_value=float(sum(known)))
    return family


def gpu_memory(bytes_by_node: Mapping[str, int], help_text: str) -> Metric:
    family = GaugeMetricFamily(GPU_MEMORY, help_text, labels=["node"])
    for node, size in bytes_by_node.items():
        family.add_metric([node], size / 10**6)
    return family


def evictions(counts: Mapping[tuple[str, str], int], help_text: str) -> Metric:
    family = UntypedMetricFamily(EVICTIONS, help_text, labels=["tier", "reason"])
    for (tier, reason), count in sorted(counts.items()):
        family.add_metric([tier, reason], count)
    return family


def mismatches(counts: Mapping[str, int], help_text: str) -> Metric:
    family = UntypedMetricFamily(MISMATCHES, help_text, labels=["node"])
    for node, count in counts.items():
        family.add_metric([node], count)
    return family


def by_adapter(name: str, help_text: str, *more: str) -> GaugeMetricFamily:
    """A family that names tenant and adapter; ``more`` labels come behind."""
    return GaugeMetricFamily(name, help_text, labels=["tenant", "adapter", *more])


def _hits(figures: FleetFigures) -> Iterator[Metric]:
    known = {tier: figures.tiers[tier].requests for tier in TIERS if tier in figures.tiers}
    every = sum(known.values())
    shares = {tier: requests / every for tier, requests in known.items()} if every else {}
    window = f"within {figures.window_s:g} s"
    yield hit_rate(shares, f"Share of requests {window} whose version was in this tier when they came; adds up to 1.")
    misses = GaugeMetricFamily(MISS_RATE, f"Share of requests {window} whose version was in no engine.")
    misses.add_metric([], sum(shares.get(tier, 0.0) for tier in MISSES))
    yield misses
    cold = GaugeMetricFamily(
        COLD_LATENCY,
        f"How long requests {window} waited for a load, by where their version was.",
        labels=["tier", "quantile"],
    )
    for tier in MISSES:
        if tier in figures.tiers:
            _add_quantiles(cold, [tier], figures.tiers[tier].load_ms)
    yield cold


def _quotas(usages: Sequence[Usage], *, most: int) -> Iterator[Metric]:
    named = _largest_tenants(usages, most)
    usage = GaugeMetricFamily(
        QUOTA_USAGE,
        "What a tenant has of a base model's nodes: slots, bytes, loads begun within a minute, loads that wait.",
        labels=["tenant", "base_model", "resource"],
    )
    limit = GaugeMetricFamily(
        "per_tenant_adapter_quota_limit",
        "What a tenant is guaranteed of a base model's nodes (floor) and may have at most (ceiling).",
        labels=["tenant", "base_model", "resource", "bound"],
    )
    others: dict[tuple[str, str], float] = {}
    for each in usages:
        if each.tenant not in named:
            key = (each.base_model, each.resource)
            others[key] = others.get(key, 0) + each.used
            continue
        labels = [each.tenant, each.base_model, each.resource]
        usage.add_metric(labels, each.used)
        limit.add_metric([*labels, "floor"], each.floor)
        if each.ceiling is not None:
            limit.add_metric([*labels, "ceiling"], each.ceiling)
    for (base_model, resource), used in others.items():
        usage.add_metric([OTHERS, base_model, resource], used)
    yield usage
    yield limit


def _largest_tenants(usages: Sequence[Usage], most: int) -> frozenset[str]:
    """Those with the largest part of any resource."""
    whole: dict[tuple[str, str], float] = {}
    for each in usages:
        whole[each.base_model, each.resource] = whole.get((each.base_model, each.resource), 0) + each.used
    parts: dict[str, float] = {}
    for each in usages:
        part = each.used / (whole[each.base_model, each.resource] or 1)
        parts[each.tenant] = max(parts.get(each.tenant, 0), part)
    return frozenset(sorted(parts, key=lambda tenant: (-parts[tenant], tenant))[:most])


def _by_adapter(figures: FleetFigures) -> Iterator[Metric]:
    window = f"within {figures.window_s:g} s"
    ttft = by_adapter(TTFT, f"Milliseconds to the first byte of an answer, of requests {window}.", "quantile")
    errors = by_adapter(ERROR_RATE, f"Share of requests {window} that failed and not by their client's doing.")
    requests = by_adapter("requests_by_adapter", f"Requests {window}.")
    for labels, traffic in figures.adapters.items():
        _add_quantiles(ttft, list(labels), traffic.ttft_ms)
        errors.add_metric(labels, traffic.failed / traffic.requests)
        requests.add_metric(labels, traffic.requests)
    yield from (ttft, errors, requests)


def _by_tenant(figures: FleetFigures) -> Iterator[Metric]:
    window = f"within {figures.window_s:g} s"
    latency = GaugeMetricFamily(
        TENANT_LATENCY,
        f"Milliseconds to the first byte and to the end of an answer, of requests {window}.",
        labels=["tenant", "until", "quantile"],
    )
    for tenant, traffic in figures.tenants.items():
        _add_quantiles(latency, [tenant, "first_byte"], traffic.ttft_ms)
        _add_quantiles(latency, [tenant, "end"], traffic.total_ms)
    yield latency


def _add_quantiles(family: GaugeMetricFamily, labels: list[str], values: Sequence[float]) -> None:
    for quantile, value in zip(QUANTILES, values, strict=False):
        family.add_metric([*labels, f"{quantile:g}"], value)
