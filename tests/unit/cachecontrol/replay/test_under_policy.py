import math

import pytest

from cachecontrol.policy.effective import PolicyInForce, built_in
from cachecontrol.policy.parse import parse_policy
from cachecontrol.replay.under_policy import NodeMeans, shape_under, weighted_by
from cachecontrol.states import EngineKind
from tests.unit.cachecontrol.replay.kit import trace

TEXT = """
base_model: llama
adapter_cache:
  cpu_warm: {max_adapters: 100, max_memory_gb: 64}
  disk_cache: {max_size_gb: 10, high_water: 0.8, low_water: 0.5}
sla_classes: {standard: {priority_weight: 1, wait_s: 30}, gold: {priority_weight: 4, wait_s: 30}}
tenants: {acme: {sla: gold}}
"""


def policy() -> PolicyInForce:
    return PolicyInForce(number=None, document=parse_policy(TEXT))


def test_a_policy_bounds_what_a_node_has() -> None:
    shape = shape_under(policy(), NodeMeans(gpu_slots=8, cpu_slots=256))
    assert (shape.gpu_slots, shape.places, shape.cpu_slots) == (8, 100, 256)
    assert shape.memory_mib == pytest.approx(64e9 / 2**20)
    assert shape.disk_mib == pytest.approx(0.8 * 10e9 / 2**20)


def test_a_node_bounds_what_a_policy_allows() -> None:
    assert shape_under(policy(), NodeMeans(cpu_slots=20)).places == 20


def test_without_a_budget_memory_is_no_bound() -> None:
    assert shape_under(built_in("llama"), NodeMeans()).memory_mib == math.inf


def test_unloads_free_memory_where_the_engine_says_so() -> None:
    assert not shape_under(policy(), NodeMeans(engine=EngineKind.VLLM)).frees_on_unload
    assert shape_under(policy(), NodeMeans(engine=EngineKind.SGLANG)).frees_on_unload


def test_tenants_that_a_trace_names_weigh_what_the_policy_says() -> None:
    named = trace([0, 1], weight=[9.0, 9.0], tenants=("acme", "globex"))
    assert weighted_by(policy(), named).weight.tolist() == [4.0, float(policy().weight_of("globex"))]


def test_a_trace_without_names_keeps_its_weights() -> None:
    assert weighted_by(policy(), trace([0, 1], weight=[9.0, 9.0])).weight.tolist() == [9.0, 9.0]
