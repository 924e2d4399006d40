"""The whole stack: what web, the workers and the agent tell of requests that really went through it."""

import json
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cachecontrol.metrics import NAMES
from deploy.embedded.ports import LOOPBACK
from deploy.embedded.stack import Stack
from tests.e2e.journey import ADAPTER, TENANT, Journey, wait_until
from tests.factories.adapters import adapter_files
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
REQUESTS = 5


def web_page(stack: Stack) -> str:
    token = json.loads(stack.facts.secrets.bootstrap.read_text())["metrics_token"]
    answer = httpx.get(f"{stack.urls['web']}/metrics", headers={"Authorization": f"Bearer {token}"})
    return answer.raise_for_status().text


def page_of(stack: Stack, process: str) -> str:
    answer = httpx.get(f"http://{LOOPBACK}:{stack.facts.ports[f'{process}.metrics']}/metrics")
    return answer.raise_for_status().text


def value(page: str, name: str, **labels: str) -> float:
    found = [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and sample.labels.items() >= labels.items()
    ]
    return sum(found)


def test_requests_through_the_stack_show_on_every_page(fake_stack: Stack, journey: Journey, tmp_path: Path) -> None:
    journey.push(write_adapter(tmp_path / "one", adapter_files(seed=77)), "v-one")
    journey.approve("v-one")
    journey.point_alias("v-one")
    wait_until(lambda: journey.answering_version() == f"{TENANT}/{ADAPTER}@v-one", "it answers")
    for _ in range(REQUESTS):
        journey.ask().raise_for_status()
    whose = {"tenant": TENANT, "adapter": ADAPTER}
    wait_until(lambda: value(web_page(fake_stack), "requests_by_adapter", **whose) > REQUESTS, "they are counted")
    web = web_page(fake_stack)
    for process in ("control", "validate"):
        page = page_of(fake_stack, process)
        assert set(NAMES) <= {family.name for family in text_string_to_metric_families(page) if family.documentation}
        assert value(page, "lorekeeper_tasks_total", state="success") > 0
    assert value(web, "adapter_cache_hit_rate") == pytest.approx(1)
    assert value(web, "ttft_by_adapter", **whose, quantile="0.5") > 0
    assert value(web, "error_rate_by_adapter", **whose) == 0
    assert value(web, "adapter_gpu_memory_mb", node="embedded") > 0
    assert value(web, "per_tenant_adapter_quota_usage", tenant=TENANT, resource="disk_bytes") > 0
    node = page_of(fake_stack, "agent")
    assert set(NAMES) <= {family.name for family in text_string_to_metric_families(node) if family.documentation}
    assert value(node, "adapter_load_latency_ms_count", outcome="loaded") >= 1
    assert value(node, "per_tenant_adapter_quota_usage", tenant=TENANT, resource="cpu_bytes") > 0
