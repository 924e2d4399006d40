from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cachecontrol.metrics import NAMES
from registry.naming import ATTESTATION_FILE
from tests.unit.workers.node.kit import BASE, NODE, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_warm
from workers.node.errors import EngineRefusedError
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.evict import evict
from workers.node.jobs.warm import warm
from workers.node.metrics import page, tally
from workers.node.metrics.page import make_registry


@dataclass(frozen=True)
class Named:
    """As much of the settings as the page takes."""

    node: str = NODE
    base_model: str = BASE


def families(agent: Agent) -> dict[str, Any]:
    named: Any = Named()
    text = generate_latest(make_registry(agent, named)).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(agent: Agent, name: str) -> Mapping[tuple[str, ...], float]:
    """By the labels' values, in the order of the labels' names."""
    samples = [sample for sample in families(agent)[name].samples if sample.name in (name, f"{name}_total")]
    return {tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value for sample in samples}


def test_every_name_that_is_promised_is_there_with_a_text(rig: Rig) -> None:
    found = families(rig.agent())
    assert [name for name in NAMES if not found[name].documentation] == []
    document = (Path(__file__).resolve().parents[5] / "docs" / "metrics.md").read_text()
    assert [name for name in found if f"`{name}" not in document and not name.endswith("_created")] == []


def test_a_load_counts_with_where_its_version_was_found(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    warm(agent, parse_warm(release.warm()))
    rig.engine.restart("boot-2")
    warm(agent, parse_warm(release.warm(generation=2)))
    shares = values(agent, "adapter_cache_hit_rate")
    assert shares == pytest.approx({("gpu",): 1 / 3, ("cpu",): 0, ("disk",): 1 / 3, ("remote",): 1 / 3})
    assert values(agent, "lorekeeper_node_fetched_bytes")[()] == sum(map(len, release.contents.values()))


def test_loads_that_end_are_a_histogram_by_their_end(rig: Rig) -> None:
    agent = rig.agent()
    warm(agent, parse_warm(rig.release().warm()))
    rig.engine.load_error = EngineRefusedError("no")
    warm(agent, parse_warm(rig.release(version="v2", seed=2).warm()))
    samples = families(agent)["adapter_load_latency_ms"].samples
    counts = {
        sample.labels["outcome"]: sample.value for sample in samples if sample.name == "adapter_load_latency_ms_count"
    }
    assert counts == {"loaded": 1, "failed": 1}
    assert values(agent, "error_rate_by_adapter") == {("support-tone", "acme"): 0.5}
    assert list(values(agent, "ttft_by_adapter")) == [("support-tone", "acme")]


def test_a_version_that_leaves_the_engine_is_an_eviction(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    evict(agent, parse_evict(release.evict(to="disk")))
    agent.tally.dropped("ttl")
    assert values(agent, "adapter_eviction_count") == {("asked", "gpu"): 1, ("ttl", "disk"): 1}


def test_what_is_on_the_disk_and_in_the_engine_counts_for_its_tenant(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    size = sum(map(len, release.contents.values()))
    warm(agent, parse_warm(release.warm()))
    assert values(agent, "per_tenant_adapter_quota_usage")[BASE, "cpu_bytes", "acme"] == 0
    Heartbeat(agent).report()
    usage = values(agent, "per_tenant_adapter_quota_usage")
    assert usage == {(BASE, "disk_bytes", "acme"): size, (BASE, "cpu_bytes", "acme"): size}
    assert values(agent, "adapter_gpu_memory_mb") == {(NODE,): size / 10**6}
    # A restarted agent knows it by what is on the disk.
    assert values(rig.agent(), "per_tenant_adapter_quota_usage")[BASE, "disk_bytes", "acme"] == size


def test_only_what_is_in_a_slot_takes_gpu_memory_where_the_engine_tells(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    sight = tally.EngineSight(loaded=(release.name,), tiers={release.name: "cpu"})
    agent.tally.saw(sight, boot_id="b", mismatched=())
    assert values(agent, "adapter_gpu_memory_mb") == {(NODE,): 0}


def test_a_folder_without_an_attestation_of_ours_is_nobodys(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    folder = agent.cache.folder(release.name)
    (folder / ATTESTATION_FILE).unlink()
    (folder / ATTESTATION_FILE).write_text("{}")
    assert (BASE, "disk_bytes", "_unknown") in values(agent, "per_tenant_adapter_quota_usage")


def test_a_mismatch_counts_once_as_long_as_it_lasts(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.roots[release.name] = "/elsewhere"
    heartbeat = Heartbeat(agent)
    heartbeat.report()
    heartbeat.report()
    assert values(agent, "adapter_version_mismatch") == {(NODE,): 1}
    rig.engine.roots.clear()
    heartbeat.report()
    rig.engine.roots[release.name] = "/elsewhere"
    heartbeat.report()
    assert values(agent, "adapter_version_mismatch") == {(NODE,): 2}


def test_an_engine_that_is_away_is_not_well(rig: Rig) -> None:
    agent = rig.agent()
    Heartbeat(agent).report()
    assert values(agent, "lorekeeper_node_engine_healthy") == {(): 1}
    rig.engine.away = True
    Heartbeat(agent).report()
    assert values(agent, "lorekeeper_node_engine_healthy") == {(): 0}


def test_labels_are_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MOST_ADAPTERS", 1)
    monkeypatch.setattr(page, "_MOST_TENANTS", 0)
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    grant = agent.verifier.grant(parse_warm(release.warm(generation=2)))
    outcome = warm(agent, parse_warm(release.warm(generation=2)))
    assert outcome is not None
    other: Any = type("G", (), {"tenant": "globex", "adapter": grant.adapter})
    agent.tally.ended("warm", other, outcome)
    assert list(values(agent, "error_rate_by_adapter")) == [(grant.adapter, "globex")]
    assert {tenant for *_, tenant in values(agent, "per_tenant_adapter_quota_usage")} == {"_other"}
