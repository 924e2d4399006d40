from typing import Any

import pytest

from cachecontrol.policy.checks import PoolNode, Problem, find_problems
from cachecontrol.policy.parse import parse_policy
from tests.unit.cachecontrol.policy.texts import FULL, policy

GB = 10**9


def node(name: str = "n1", **facts: Any) -> PoolNode:
    known: dict[str, Any] = {"gpu_slots": 16, "max_rank": 16, "disk_bytes": 600 * GB, "slot_bytes": GB // 4, **facts}
    return PoolNode(name=name, **known)


def problems(text: str, *nodes: PoolNode) -> tuple[Problem, ...]:
    return find_problems(parse_policy(text), nodes)


def test_slots_that_fill_the_memory_to_the_last_byte_are_fine() -> None:
    assert problems(FULL, node()) == ()


def test_memory_that_the_slots_of_an_engine_exceed_is_refused_with_the_figures() -> None:
    (problem,) = problems(FULL, node(), node("n2", gpu_slots=17))
    assert problem.path == "adapter_cache.gpu_hot.max_memory_gb"
    assert "n2 sets aside 4.25 GB for its 17 slots at rank 16, and the policy allows 4 GB" in problem.message


def test_an_engine_that_sets_nothing_aside_is_not_weighed() -> None:
    assert problems(FULL, node(gpu_slots=4000, slot_bytes=None)) == ()


@pytest.mark.parametrize(("pins", "fit"), [(2, True), (3, False)])
def test_pins_leave_one_slot_of_each_node_free(pins: int, fit: bool) -> None:
    entries = ", ".join(f"{{tenant: a, adapter: b, version: v{number}}}" for number in range(pins))
    found = problems(policy(f"pins: [{entries}]"), node(gpu_slots=2), node("n2", gpu_slots=2))
    assert [problem.path for problem in found] == ([] if fit else ["pins"])


def test_fewer_hot_places_than_slots_leave_less_room_for_pins() -> None:
    text = policy("adapter_cache: {gpu_hot: {max_adapters: 1}}\npins: [{tenant: a, adapter: b, version: v1}]")
    assert [problem.path for problem in problems(text, node())] == ["pins"]


@pytest.mark.parametrize(
    ("floors", "told"),
    [
        ("gpu_slots: {floor: 10}", "the floors of gpu_slots come to 20, and all nodes together have 16"),
        ("disk_mb: {floor: 300001}", "the floors of disk_bytes come to 600,002,000,000"),
        ("cpu_mb: {floor: 501}", "the floors of cpu_bytes come to 1,002,000,000, and all nodes together have"),
    ],
)
def test_guarantees_beyond_what_there_is_are_refused(floors: str, told: str) -> None:
    text = policy(f"quotas: {{tenants: {{acme: {{{floors}}}, globex: {{{floors}}}}}}}")
    (problem,) = problems(text, node(memory_bytes=GB))
    assert problem.path == "quotas.tenants"
    assert told in problem.message


def test_guarantees_of_memory_nobody_has_measured_are_taken_on_trust() -> None:
    assert problems(policy("quotas: {tenants: {acme: {cpu_mb: {floor: 900000}}}}"), node()) == ()


def test_without_nodes_nothing_is_known_to_be_wrong() -> None:
    assert problems(policy("quotas: {tenants: {acme: {gpu_slots: {floor: 1000}}}}")) == ()
