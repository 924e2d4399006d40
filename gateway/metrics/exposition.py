"""The figures in the formats of Prometheus."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateway.metrics.counts import BOUNDS_MS, Adapter, Figures

_OTHER: Final = "_other"
_MOST: Final = 50
_QUANTILES: Final = (0.5, 0.95, 0.99)


def exposition(figures: Figures, *, accept: str) -> tuple[bytes, bytes]:
    """The page and its content type, in the format that the asker accepts."""
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry()
    registry.register(_Collector(figures))
    return encode(registry), content_type.encode()


class _Collector(Collector):
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        yield _ended(figures)
        yield _histogram(
            "lorekeeper_gateway_first_byte_seconds", "Time from arrival to the first byte.", figures["first_byte"]
        )
        yield _histogram("lorekeeper_gateway_request_seconds", "Time from arrival to the end.", figures["total"])
        yield from _hits(figures["tiers"])
        yield from _adapters(figures["adapters"])
        for name, value in sorted(figures["gauges"].items()):
            yield GaugeMetricFamily(f"lorekeeper_gateway_{name}", f"{name.replace('_', ' ')}, of all processes.", value)
        breakers = GaugeMetricFamily(
            "lorekeeper_gateway_breaker", "1 for the state of a node's breaker.", labels=["node", "state"]
        )
        for node, state in sorted(figures["breakers"].items()):
            breakers.add_metric([node, state], 1)
        yield breakers


def _ended(figures: Figures) -> Metric:
    family = CounterMetricFamily(
        "lorekeeper_gateway_requests", "Requests that ended, since ever.", labels=["path", "status", "error"]
    )
    for path, status, kind, count in sorted(figures["ended"]):
        family.add_metric([path, str(status), kind], count)
    return family


def _histogram(name: str, text: str, times: list[int]) -> Metric:
    *counts, total = times
    buckets, so_far = [], 0
    for bound, count in zip((*BOUNDS_MS, None), counts, strict=True):
        so_far += count
        buckets.append(("+Inf" if bound is None else str(bound / 1000), float(so_far)))
    family = HistogramMetricFamily(name, text)
    family.add_metric([], buckets, total / 1000)
    return family


def _hits(tiers: dict[str, int]) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "adapter_cache_hit_rate", "Share of the window's requests whose version was in the tier.", labels=["tier"]
    )
    together = sum(tiers.values())
    for tier, count in sorted(tiers.items()):
        family.add_metric([tier], count / together)
    yield family


def _adapters(adapters: list[Adapter]) -> Iterator[Metric]:
    labels = ["tenant", "adapter"]
    times = GaugeMetricFamily("ttft_by_adapter", "Milliseconds to the first byte.", labels=[*labels, "quantile"])
    errors = GaugeMetricFamily("error_rate_by_adapter", "Share of requests that failed.", labels=labels)
    requests = GaugeMetricFamily("requests_by_adapter", "Requests of the window.", labels=labels)
    for adapter in _named(adapters):
        names = [adapter.tenant, adapter.adapter]
        requests.add_metric(names, adapter.requests)
        errors.add_metric(names, adapter.failed / adapter.requests)
        ordered = sorted(adapter.ttft_ms)
        for quantile in _QUANTILES if ordered else ():
            times.add_metric([*names, str(quantile)], ordered[min(int(quantile * len(ordered)), len(ordered) - 1)])
    yield from (times, errors, requests)


def _named(adapters: list[Adapter]) -> list[Adapter]:
    """Those with most requests by name, all others as one."""
    ordered = sorted(adapters, key=lambda adapter: (-adapter.requests, adapter.tenant, adapter.adapter))
    rest = ordered[_MOST:]
    if not rest:
        return ordered
    times = [time for adapter in rest for time in adapter.ttft_ms]
    requests, failed = sum(adapter.requests for adapter in rest), sum(adapter.failed for adapter in rest)
    return [*ordered[:_MOST], Adapter(_OTHER, _OTHER, requests, failed, times)]
