from datetime import timedelta

import pytest

from cachecontrol.policy.effective import PolicyInForce, built_in
from cachecontrol.policy.parse import parse_policy
from cachecontrol.quotas import Bounds, Resource
from cachecontrol.scoring.settings import ScoringSettings
from tests.unit.cachecontrol.policy.texts import BASE, FULL, policy
from workers.node.limits import Limits, LimitsBook

GB = 10**9


def in_force(text: str) -> PolicyInForce:
    return PolicyInForce(number=1, document=parse_policy(text))


def test_without_a_policy_a_node_gives_all_it_has_and_density_decides() -> None:
    defaults = built_in(BASE)
    assert defaults.number is None
    assert (defaults.hot_limit(2), defaults.places(4), defaults.disk_bytes(7), defaults.cpu_bytes(9)) == (2, 4, 7, 9)
    assert defaults.cpu_bytes(None) is None
    assert defaults.eviction_policy == "density"
    assert (defaults.cpu_ttl, defaults.disk_ttl) == (None, None)
    assert defaults.quotas.of("acme").of(Resource.GPU_SLOTS) == Bounds()


def test_the_defaults_of_the_scores_are_those_of_the_policies_themselves() -> None:
    assert built_in(BASE).scoring == ScoringSettings()


def test_the_usual_policy_takes_effect_as_it_is_written() -> None:
    found = in_force(FULL)
    assert (found.hot_limit(100), found.hot_limit(8)) == (16, 8)
    assert (found.places(1000), found.places(20)) == (256, 20)
    assert (found.cpu_bytes(None), found.cpu_bytes(GB), found.cpu_bytes(100 * GB)) == (64 * GB, GB, 64 * GB)
    assert (found.disk_bytes(600 * GB), found.disk_bytes(GB)) == (500 * GB, GB)
    assert found.cpu_ttl == timedelta(hours=2)
    assert found.eviction_policy == "weighted_lru"


def test_the_constants_of_the_scores_come_from_the_policy() -> None:
    text = policy("scoring: {half_life_minutes: 10, a: 1, b: 2, phi: 0, rho: 1, weighted_lru: {idle: 7}}")
    scoring = in_force(text).scoring
    assert (scoring.half_life, scoring.a, scoring.b, scoring.phi, scoring.rho) == (timedelta(minutes=10), 1, 2, 0, 1)
    assert (scoring.weighted_lru.idle, scoring.weighted_lru.memory) == (7, 0.25)


def test_a_tenant_has_the_weight_and_the_patience_of_its_class() -> None:
    found = in_force(
        policy("sla_classes: {standard: {wait_s: 5}, gold: {priority_weight: 8}}\ntenants: {a: {sla: gold}}")
    )
    assert (found.weight_of("a"), found.wait_s_of("a")) == (8, 30)
    assert (found.weight_of("b"), found.wait_s_of("b")) == (1, 5)


def test_quotas_are_in_slots_and_bytes_and_fall_back_to_the_default() -> None:
    more = """\
quotas:
  default: {gpu_slots: {ceiling: 2}, loads_per_minute: 6}
  tenants:
    acme: {gpu_slots: {floor: 1, ceiling: 4}, cpu_mb: {ceiling: 10}, disk_mb: {floor: 5}, queue_share: 0.25}
"""
    found = in_force(policy(f"{more}loading: {{queue_limit: 8, queue_share_per_tenant: 0.1}}"))
    acme, other = found.quotas.of("acme"), found.quotas.of("other")
    assert acme.of(Resource.GPU_SLOTS) == Bounds(1, 4)
    assert acme.of(Resource.CPU_BYTES) == Bounds(0, 10_000_000)
    assert acme.of(Resource.DISK_BYTES) == Bounds(5_000_000, None)
    assert other.of(Resource.GPU_SLOTS) == Bounds(0, 2)
    assert (found.loads_per_minute_of("acme"), found.loads_per_minute_of("other")) == (None, 6)
    # A quarter of eight; and a tenth of eight still is one place.
    assert (found.queue_places_of("acme"), found.queue_places_of("other")) == (2, 1)


@pytest.mark.parametrize(("ttl", "seconds"), [("", None), (", ttl_minutes: 2", 120)])
def test_an_agent_is_told_its_limits_in_bytes_and_seconds(ttl: str, seconds: int | None) -> None:
    disk = f"{{max_size_gb: 1, high_water: 0.7, low_water: 0.6, scrub_mb_per_s: 0{ttl}}}"
    text = policy(f"adapter_cache: {{disk_cache: {disk}}}\nloading: {{concurrent_downloads: 2, origin_timeout_s: 9}}")
    assert in_force(text).node_limits(5 * GB) == {
        "disk_bytes": GB,
        "high_water": 0.7,
        "low_water": 0.6,
        "disk_ttl_s": seconds,
        "scrub_bytes_per_s": 0,
        "concurrent_downloads": 2,
        "origin_timeout_s": 9,
    }


@pytest.mark.parametrize(
    "loading",
    [
        "origin_timeout_s: 1, concurrent_downloads: 1",
        "origin_timeout_s: 3600, concurrent_downloads: 16",
    ],
)
def test_what_a_policy_may_say_to_an_agent_is_heeded_to_the_letter(loading: str) -> None:
    disk = "{max_size_gb: 0.0000000001, high_water: 1, low_water: 0.000001, ttl_minutes: 0.001, scrub_mb_per_s: 0}"
    told = in_force(policy(f"adapter_cache: {{disk_cache: {disk}}}\nloading: {{{loading}}}\n")).node_limits(GB)
    book = LimitsBook(Limits())
    book.take(told)
    assert {name: getattr(book.now, name) for name in told} == told


def test_a_node_is_expected_to_serve_what_the_policy_says() -> None:
    assert in_force(policy("replicas: {requests_per_minute_per_node: 2}\n")).served_per_h == 120
