import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.cost import Pace, cost


def pace(*, floor_ms: float = 10.0, slope_ms: float = 0.5, prefill_ms: float = 0.1, mean: float = 100.0) -> Pace:
    made = Pace()
    made.floor_ms, made.slope_ms, made.prefill_ms, made.mean_tokens = floor_ms, slope_ms, prefill_ms, mean
    return made


def of(node: Pace, requests: int, *, prompt_tokens: int = 0, tier: str = "gpu", token_ms: float | None = None) -> float:
    return cost(node, requests, prompt_tokens=prompt_tokens, tier=tier, token_ms=token_ms)


def test_the_cost_is_the_added_prefill_per_token_and_the_added_step_for_all_who_are_there() -> None:
    # 1000 x 0.1 ms of prefill over 100 tokens, and 0.5 ms a step, for three requests and the new one
    assert of(pace(), 3, prompt_tokens=1000) == pytest.approx((100 / 100 + 0.5) * 4)


def test_an_adapter_that_has_to_come_into_a_slot_first_costs_more() -> None:
    costs = [of(pace(), 1, tier=tier) for tier in ("gpu", "cpu", "disk")]
    assert costs == sorted(costs)
    assert costs[0] < costs[1]


def test_the_cost_is_infinite_where_the_promised_time_would_break() -> None:
    node = pace(floor_ms=10, slope_ms=1)
    assert of(node, 9, token_ms=20) < math.inf  # 10 + 10
    assert of(node, 10, token_ms=20) == math.inf  # 10 + 11


@given(st.integers(0, 500), st.integers(0, 100_000))
def test_more_requests_and_longer_prompts_never_cost_less(requests: int, prompt_tokens: int) -> None:
    assert of(pace(), requests + 1, prompt_tokens=prompt_tokens) > of(pace(), requests, prompt_tokens=prompt_tokens)
    assert of(pace(), requests, prompt_tokens=prompt_tokens + 100) > of(pace(), requests, prompt_tokens=prompt_tokens)


def test_the_line_of_a_node_is_learnt_from_its_answers() -> None:
    node = Pace()
    for step in range(400):
        batch = 1 + step % 16
        node.observe_decode(batch=batch, tokens=50, took_ms=50 * (20 + 3 * batch))
        node.observe_prefill(prompt_tokens=200, took_ms=100)
    assert node.floor_ms == pytest.approx(20, rel=0.05)
    assert node.slope_ms == pytest.approx(3, rel=0.05)
    assert node.prefill_ms == pytest.approx(0.5, rel=0.05)
    assert node.mean_tokens == pytest.approx(50, rel=0.05)


def test_a_node_that_grew_slower_is_seen_after_some_hundred_answers() -> None:
    node = Pace()
    for slope in (1, 4):
        for step in range(300):
            batch = 1 + step % 8
            node.observe_decode(batch=batch, tokens=50, took_ms=50 * (10 + slope * batch))
    assert node.slope_ms == pytest.approx(4, rel=0.05)


def test_without_a_spread_of_batches_only_the_level_is_learnt() -> None:
    node = Pace()
    before = node.slope_ms
    for _ in range(100):
        node.observe_decode(batch=1, tokens=10, took_ms=400)
    assert node.slope_ms == before
    assert node.floor_ms == pytest.approx(40 - before)


@given(st.lists(st.tuples(st.integers(0, 64), st.integers(-1, 2000), st.floats(-1, 1e7)), max_size=80))
def test_whatever_was_seen_costs_stay_positive_and_finite(seen: list[tuple[int, int, float]]) -> None:
    node = Pace()
    for batch, tokens, took_ms in seen:
        node.observe_decode(batch=batch, tokens=tokens, took_ms=took_ms)
        node.observe_prefill(prompt_tokens=tokens, took_ms=took_ms)
    assert 0 < of(node, 0) < math.inf
    assert of(node, 5, prompt_tokens=100) < math.inf
