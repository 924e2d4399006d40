"""The figures of the fleet, read from a real database with records of gateways in it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone

from cachecontrol.metrics import OTHERS
from cachecontrol.models import Eviction, GatewayRequest, Node, Residency
from cachecontrol.services import figures
from cachecontrol.services.figures import EvictionCount, FigureReader, read_loads, read_traffic, read_usages
from cachecontrol.states import Desired, NodeStatus, Observed
from config.metrics.fleet import FleetCollector
from registry.models import Version
from tests.factories.adapters import tiny_description
from tests.factories.cachecontrol import make_node, make_policy
from tests.factories.registry import make_actor, make_adapter, make_base_revision, make_person, make_version

pytestmark = pytest.mark.django_db
WINDOW = timedelta(seconds=300)
MANY = 50


def record(version: Version | None, **facts: Any) -> None:
    known: dict[str, Any] = {
        "at": timezone.now(),
        "request_id": "r",
        "tenant": "acme" if version is None else version.adapter.tenant.name,
        "alias": "prod",
        "version_id": None if version is None else version.pk,
        "tier": "gpu",
        "status": 200,
        "error_kind": "",
        "queue_ms": 0,
        "load_ms": 0,
        "ttft_ms": 10,
        "total_ms": 100,
        "stream": False,
    }
    GatewayRequest.objects.create(**(known | facts))


def traffic(most: int = MANY) -> Any:
    return read_traffic(since=timezone.now() - WINDOW, most=most)


def hold(node: Node, version: Version, **facts: Any) -> Residency:
    known: dict[str, Any] = {
        "desired": Desired.GPU.value,
        "observed": Observed.LOADED.value,
        "state_changed_at": timezone.now(),
        "load_ms": 250,
    }
    return Residency.objects.create(node=node, version=version, **(known | facts))


def evict(node: Node, version: Version, *, ago: timedelta = timedelta(), **facts: Any) -> Eviction:
    known: dict[str, Any] = {"tier": "cpu", "to_tier": "disk", "reason": "room", "at": timezone.now() - ago}
    return Eviction.objects.create(node=node, version=version, **(known | facts))


def test_requests_of_the_window_are_told_by_tier_tenant_and_adapter(version: Version) -> None:
    name, tenant = version.adapter.name, version.adapter.tenant.name
    for ttft in (10, 20, 30):
        record(version, ttft_ms=ttft)
    record(version, tier="remote", load_ms=700, ttft_ms=800)
    record(version, at=timezone.now() - 2 * WINDOW)
    found = traffic()
    assert found["tier", "gpu", ""].requests == 3
    assert found["tier", "remote", ""].load_ms == [700, 700, 700]
    assert found["tenant", tenant, ""].total_ms == [100, 100, 100]
    adapter = found["adapter", tenant, name]
    assert (adapter.requests, adapter.ttft_ms[0]) == (4, 25)


@pytest.mark.parametrize(
    ("status", "kind", "fails"),
    [
        (200, "", False),
        (200, "engine_dropped", True),
        (503, "no_capacity", True),
        (429, "load_shed", True),
        (400, "bad_request", False),
        (499, "client_gone", False),
    ],
)
def test_a_failure_is_what_is_not_the_clients_doing(version: Version, status: int, kind: str, *, fails: bool) -> None:
    record(version, status=status, error_kind=kind)
    assert traffic()["adapter", version.adapter.tenant.name, version.adapter.name].failed == fails


def test_adapters_and_tenants_beyond_the_bound_share_one_name() -> None:
    versions = [make_version() for _ in range(4)]
    for number, version in enumerate(versions):
        for _ in range(number + 1):
            record(version)
    found = traffic(most=2)
    names = {(name, adapter): each.requests for (kind, name, adapter), each in found.items() if kind == "adapter"}
    assert names == {
        (OTHERS, OTHERS): 3,
        **{(each.adapter.tenant.name, each.adapter.name): n for each, n in zip(versions[2:], (3, 4), strict=True)},
    }
    assert len([name for kind, name, _ in found if kind == "tenant"]) == 3


def test_requests_that_came_to_no_version_count_for_their_tenant_alone() -> None:
    record(None, tier="", status=404, error_kind="model_not_found")
    assert set(traffic()) == {("tenant", "acme", "")}


def test_of_very_many_requests_the_newest_are_read(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_REQUESTS", 2)
    record(version, tier="cpu", at=timezone.now() - timedelta(seconds=60))
    for _ in range(2):
        record(version)
    assert ("tier", "cpu", "") not in traffic()


def test_the_loads_of_the_window_are_told(node: Node, version: Version) -> None:
    hold(node, version, load_ms=40)
    hold(node, _another(version), state_changed_at=timezone.now() - 2 * WINDOW)
    hold(node, _another(version), observed=Observed.ON_DISK.value)
    assert read_loads(since=timezone.now() - WINDOW) == (40,)


def test_every_eviction_counts_once_however_often_it_is_asked(node: Node, version: Version) -> None:
    count, now = EvictionCount(), timezone.now()
    evict(node, version, ago=timedelta(hours=1))
    evict(node, version)
    assert count.read(now=now)["cpu", "room"] == 2
    evict(node, version, tier="disk", to_tier="remote", reason="ttl")
    later = count.read(now=now + timedelta(hours=1))
    assert (later["cpu", "room"], later["disk", "ttl"], later["gpu", "plan"]) == (2, 1, 0)
    assert count.read(now=now + timedelta(hours=2)) == later == EvictionCount().read(now=now)


def test_evictions_that_are_long_over_are_not_read_again(
    node: Node, version: Version, django_assert_num_queries: Any
) -> None:
    evict(node, version, ago=timedelta(hours=1))
    count = EvictionCount()
    count.read(now=timezone.now())
    with django_assert_num_queries(2) as queries:
        count.read(now=timezone.now())
    assert all('"id" > ' in query["sql"] for query in queries.captured_queries)


def test_gpu_memory_is_what_slots_set_aside_or_what_the_plan_counts_as_hot() -> None:
    base = make_base_revision(description=tiny_description().to_json())
    version = make_version(base_revision=base, adapter=make_adapter(base_model=base.base_model))
    make_node(base_revision=base, name="v", gpu_slots=2, max_rank=8)
    make_node(base_revision=base, name="w", gpu_slots=2, max_rank=16)
    other = make_node(base_revision=base, name="t", engine_kind="tgi")
    hold(other, version, is_hot=True)
    found = FigureReader(window=WINDOW, most=MANY).read().gpu_bytes
    assert found["w"] == 2 * found["v"] > 0
    assert found["t"] == sum(version.files.values_list("artifact__size", flat=True))


def test_a_base_that_cant_be_read_hides_no_other_figure(node: Node) -> None:
    assert FigureReader(window=WINDOW, most=MANY).read().gpu_bytes == {node.name: 0}


def test_usage_is_told_with_its_limits_also_of_tenants_that_have_nothing(node: Node, version: Version) -> None:
    base_model, tenant = version.base_revision.base_model, version.adapter.tenant.name
    more = "quotas: {default: {gpu_slots: {ceiling: 1}}, tenants: {sleepy: {gpu_slots: {floor: 1}}}}\n"
    make_policy(base_model=base_model, more=more, approver=make_actor(make_person(is_platform_admin=True)))
    hold(node, version, is_hot=True)
    found = {(each.tenant, each.resource): each for each in read_usages(now=timezone.now())}
    slots = found[tenant, "gpu_slots"]
    assert (slots.base_model, slots.used, slots.floor, slots.ceiling) == (base_model.name, 1, 0, 1)
    assert found[tenant, "disk_bytes"].used == sum(version.files.values_list("artifact__size", flat=True))
    assert (found["sleepy", "gpu_slots"].used, found["sleepy", "gpu_slots"].floor) == (0, 1)


def test_one_reading_serves_everybody_for_a_while(node: Node, django_assert_num_queries: Any) -> None:
    collector = FleetCollector(FigureReader(window=WINDOW, most=MANY), most=MANY)
    first = [family.name for family in collector.collect()]
    with django_assert_num_queries(0):
        assert [family.name for family in collector.collect()] == first


def test_a_database_that_takes_too_long_leaves_the_page_without_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*, since: datetime, most: int) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(figures, "_LIMIT_MS", 20)
    monkeypatch.setattr(figures, "read_traffic", slow)
    reader = FigureReader(window=WINDOW, most=MANY)
    with pytest.raises(DatabaseError):
        reader.read()
    (up,) = FleetCollector(reader, most=MANY).collect()
    assert (up.name, up.samples[0].value) == ("lorekeeper_fleet_figures_up", 0)


def test_mismatches_are_told_of_nodes_that_are_lost_too() -> None:
    node = make_node(name="gone", status=NodeStatus.LOST)
    Node.objects.filter(pk=node.pk).update(mismatches=3)
    assert FigureReader(window=WINDOW, most=MANY).read().mismatches == {"gone": 3}


def _another(version: Version) -> Version:
    return make_version(base_revision=version.base_revision, adapter=version.adapter)
