from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from cachecontrol.metrics import LOAD_BUCKETS, NAMES, OTHERS, TIERS, FleetFigures, Traffic, Usage, bounded, families

FULL = FleetFigures(
    window_s=300,
    tiers={"gpu": Traffic(6, 0), "cpu": Traffic(2, 0), "remote": Traffic(2, 1, load_ms=(100, 900, 990))},
    adapters={("acme", "tone"): Traffic(8, 2, ttft_ms=(20, 80, 90)), (OTHERS, OTHERS): Traffic(2, 0)},
    tenants={"acme": Traffic(10, 2, ttft_ms=(20, 80, 90), total_ms=(200, 800, 900))},
    loads_ms=(9, 30, 200_000),
    evictions={("cpu", "room"): 3},
    mismatches={"n1": 1},
    gpu_bytes={"n1": 32_000_000},
    usages=(
        Usage("acme", "base", "gpu_slots", used=3, floor=1, ceiling=4),
        Usage("globex", "base", "gpu_slots", used=1),
    ),
)


class Given(Collector):
    def __init__(self, figures: FleetFigures, most: int) -> None:
        self._metrics = list(families(figures, most=most))

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> list[Metric]:
        return self._metrics


def text_of(figures: FleetFigures, most: int) -> str:
    registry = CollectorRegistry()
    registry.register(Given(figures, most))
    return generate_latest(registry).decode()


def values(figures: FleetFigures, name: str, *, most: int = 50) -> dict[str, float]:
    """By the labels as they are written."""
    lines = [line for line in text_of(figures, most).splitlines() if not line.startswith("#")]
    found = (line.rsplit(" ", 1) for line in lines if line.split("{")[0].split(" ")[0] == name)
    return {key.removeprefix(name): float(value) for key, value in found}


@pytest.mark.parametrize("figures", [FULL, FleetFigures(window_s=300)], ids=["full", "empty"])
def test_the_eight_names_come_out_as_written_each_with_a_text(figures: FleetFigures) -> None:
    read: dict[str, Any] = {family.name: family for family in text_string_to_metric_families(text_of(figures, 50))}
    assert [name for name in NAMES if name not in read or not read[name].documentation] == []


def test_every_name_is_explained_in_the_document() -> None:
    document = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text()
    names = [family.name for family in families(FULL, most=50)]
    assert [name for name in names if f"`{name}" not in document] == []


def test_each_sample_has_exactly_its_familys_name() -> None:
    lines = {line.split("{")[0].split(" ")[0] for line in text_of(FULL, 50).splitlines() if not line.startswith("#")}
    assert set(NAMES) - {"adapter_load_latency_ms"} <= lines
    assert "adapter_load_latency_ms_bucket" in lines


def test_hits_are_shares_that_add_up_to_one_and_misses_those_in_no_engine() -> None:
    shares = values(FULL, "adapter_cache_hit_rate")
    assert shares == {f'{{tier="{tier}"}}': share for tier, share in zip(TIERS, (0.6, 0.2, 0, 0.2), strict=True)}
    assert values(FULL, "adapter_cache_miss_rate") == {"": 0.2}
    assert values(FULL, "adapter_cold_load_latency_ms")['{quantile="0.95",tier="remote"}'] == 900


def test_without_requests_no_share_is_invented() -> None:
    assert set(values(FleetFigures(window_s=300), "adapter_cache_hit_rate").values()) == {0}


def test_loads_are_a_histogram_in_milliseconds() -> None:
    buckets = values(FULL, "adapter_load_latency_ms_bucket")
    assert len(buckets) == len(LOAD_BUCKETS) + 1
    found = {label: buckets[f'{{le="{label}"}}'] for label in ("10.0", "50.0", "120000.0", "+Inf")}
    assert found == {"10.0": 1, "50.0": 2, "120000.0": 2, "+Inf": 3}


def test_memory_is_in_megabytes_by_node() -> None:
    assert values(FULL, "adapter_gpu_memory_mb") == {'{node="n1"}': 32}


def test_errors_are_a_share_of_an_adapters_requests() -> None:
    assert values(FULL, "error_rate_by_adapter") == {
        '{adapter="tone",tenant="acme"}': 0.25,
        '{adapter="_other",tenant="_other"}': 0,
    }
    assert values(FULL, "ttft_by_adapter")['{adapter="tone",quantile="0.99",tenant="acme"}'] == 90


def test_a_tenants_tail_is_told_to_the_first_byte_and_to_the_end() -> None:
    tail = values(FULL, "per_tenant_latency_ms")
    assert tail['{quantile="0.99",tenant="acme",until="end"}'] == 900
    assert tail['{quantile="0.99",tenant="acme",until="first_byte"}'] == 90


def test_usage_stands_beside_what_is_guaranteed_and_allowed() -> None:
    labels = 'base_model="base",resource="gpu_slots",tenant="acme"'
    assert values(FULL, "per_tenant_adapter_quota_usage")[f"{{{labels}}}"] == 3
    limits = values(FULL, "per_tenant_adapter_quota_limit")
    assert limits['{base_model="base",bound="ceiling",resource="gpu_slots",tenant="acme"}'] == 4
    assert limits['{base_model="base",bound="floor",resource="gpu_slots",tenant="acme"}'] == 1
    assert '{base_model="base",bound="ceiling",resource="gpu_slots",tenant="globex"}' not in limits


def test_tenants_and_nodes_beyond_the_bound_are_added_up_without_their_names() -> None:
    many = FleetFigures(
        window_s=300,
        mismatches={f"n{number}": number for number in range(100)},
        gpu_bytes={f"n{number}": 10**6 for number in range(100)},
        usages=[Usage(f"t{number}", "base", "gpu_slots", used=number) for number in range(100)],
    )
    for name, whole in (
        ("adapter_version_mismatch", 4950),
        ("adapter_gpu_memory_mb", 100),
        ("per_tenant_adapter_quota_usage", 4950),
    ):
        found = values(many, name, most=5)
        assert (len(found), sum(found.values())) == (6, whole)
        assert sum("_other" in label for label in found) == 1
    assert '{node="n99"}' in values(many, "adapter_version_mismatch", most=5)


def test_what_fits_has_no_others() -> None:
    assert bounded({"a": 1, "b": 2}, most=2, rank=int, add=sum) == {"b": 2, "a": 1}
