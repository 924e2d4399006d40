from cachecontrol.policy.diff import Change, diff
from cachecontrol.policy.parse import parse_policy
from tests.unit.cachecontrol.policy.texts import FULL, policy


def changes(before: str, after: str) -> tuple[Change, ...]:
    return diff(parse_policy(before), parse_policy(after))


def test_order_comments_and_defaults_written_out_are_no_changes() -> None:
    assert changes(policy(), f"# ours\nloading: {{queue_limit: 256}}\n{policy()}") == ()


def test_every_value_that_differs_is_told_by_its_path() -> None:
    assert changes(policy(), FULL) == (
        Change("adapter_cache.gpu_hot.max_adapters", None, 16),
        Change("adapter_cache.gpu_hot.max_memory_gb", None, 4.0),
        Change("adapter_cache.gpu_hot.eviction_policy", "density", "weighted_lru"),
        Change("adapter_cache.cpu_warm.max_adapters", None, 256),
        Change("adapter_cache.cpu_warm.max_memory_gb", None, 64.0),
        Change("adapter_cache.cpu_warm.ttl_minutes", None, 120.0),
        Change("adapter_cache.disk_cache.max_size_gb", None, 500.0),
    )


def test_a_tenant_that_comes_or_goes_is_told_value_by_value() -> None:
    acme = policy("tenants: {acme: {sla: premium}}")
    assert changes(policy(), acme) == (Change("tenants.acme.sla", None, "premium"),)
    assert changes(acme, policy()) == (Change("tenants.acme.sla", "premium", None),)


def test_pins_come_and_go_whole_wherever_they_stand_in_the_list() -> None:
    pins = ["{tenant: a, adapter: b, alias: prod}", "{tenant: a, adapter: c, version: v1}"]
    both, turned, one = (policy(f"pins: [{', '.join(some)}]") for some in (pins, pins[::-1], pins[:1]))
    assert changes(both, turned) == ()
    gone = {"tenant": "a", "adapter": "c", "alias": None, "version": "v1"}
    assert changes(both, one) == (Change("pins", gone, None),)
    assert changes(one, both) == (Change("pins", None, gone),)
    assert len(changes(policy(), both)) == 2
