"""What gateways see, read by the gateway's own code through its own database role."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import GatewayRequest, Node, Residency
from cachecontrol.services.lifecycle import tend_nodes
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Desired, Outcome
from deploy.embedded.postgres import GATEWAY
from gateway.database import connect
from gateway.records import RecordWriter, RequestRecord
from gateway.routing.reading import read_snapshot
from gateway.routing.snapshot import RoutingSnapshot
from registry.models import Version
from tests.factories.cachecontrol import backdate, make_node, report, tell
from tests.factories.registry import make_actor, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]


@pytest.fixture
def gateway_url(postgres: Any) -> str:
    return str(postgres.url(GATEWAY, database=connection.settings_dict["NAME"]))


@pytest.fixture
def version(db: None) -> Version:
    return make_version()


@pytest.fixture
def node(version: Version) -> Node:
    return make_node(base_revision=version.base_revision, name="n1")


@pytest.fixture
def heard(gateway_url: str) -> Iterator[Callable[[], list[str]]]:
    """``heard()``: the notifications that came since it was called last."""
    with psycopg.connect(gateway_url, autocommit=True) as listening:
        listening.execute("LISTEN lorekeeper_routing")
        yield lambda: [notice.payload for notice in listening.notifies(timeout=0.2)]


def snapshot(url: str) -> RoutingSnapshot:
    async def read() -> RoutingSnapshot:
        async with await connect(url, purpose="test") as gateway:
            await gateway.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            return (await read_snapshot(gateway)).snapshot

    return asyncio.run(read())


def load(node: Node, version: Version) -> Residency:
    residency = warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADED)
    return residency


def seen(url: str, version: Version) -> list[tuple[str, str, str, int]]:
    found = snapshot(url).residencies.get(version.pk, ())
    return [(item.node, item.engine_name, item.observed, item.generation) for item in found]


def make_loaded_world() -> tuple[Node, Version]:
    version = make_version()
    node = make_node(base_revision=version.base_revision, name="n1")
    point_alias(name="support", version=version)
    load(node, version)
    return node, version


def test_a_gateway_sees_alias_version_node_and_residency(gateway_url: str) -> None:
    _node, version = make_loaded_world()
    found = snapshot(gateway_url)
    alias = found.alias(version.adapter.tenant.name, "support")
    assert alias is not None
    assert (alias.version_id, alias.revision) == (version.pk, 1)
    assert found.versions[version.pk].engine_name == version.engine_name
    assert found.versions[version.pk].may_be_served
    assert found.nodes["n1"].base_digest == version.base_revision.digest
    assert found.nodes["n1"].base_model == version.base_revision.base_model.name
    assert found.nodes["n1"].status == "up"
    assert seen(gateway_url, version) == [("n1", version.engine_name, "loaded", 1)]


def test_what_is_not_wanted_any_more_stops_being_routable_at_once(gateway_url: str) -> None:
    node, version = make_loaded_world()
    evict_version(actor=make_actor(), node=node, version=version)
    assert seen(gateway_url, version) == [("n1", version.engine_name, "draining", 2)]


def test_what_is_in_an_engine_that_is_not_well_is_not_loaded_until_it_is(
    gateway_url: str, heard: Callable[[], list[str]]
) -> None:
    node, version = make_loaded_world()
    report(node, loaded=(version.engine_name,))
    heard()
    report(node, engine_healthy=False)
    assert heard() == ["nodes"]
    assert seen(gateway_url, version) == [("n1", version.engine_name, "loading", 1)]
    report(node, loaded=(version.engine_name,))
    assert heard() == ["nodes"]
    assert seen(gateway_url, version) == [("n1", version.engine_name, "loaded", 1)]


@pytest.mark.parametrize(
    ("mark", "value"), [("draining", True), ("poisoned", True), ("recycling_since", timezone.now())]
)
def test_a_node_that_is_emptied_or_restarted_stops_being_routable_at_once(
    gateway_url: str, heard: Callable[[], list[str]], mark: str, value: Any
) -> None:
    node, version = make_loaded_world()
    heard()
    Node.objects.filter(pk=node.pk).update(**{mark: value})
    assert heard() == ["nodes"]
    assert seen(gateway_url, version) == [("n1", version.engine_name, "draining", 1)]


def test_a_version_wanted_on_disk_alone_is_draining_and_its_tier_is_told(
    gateway_url: str, heard: Callable[[], list[str]]
) -> None:
    node, version = make_loaded_world()
    with psycopg.connect(gateway_url, autocommit=True) as gateway:
        assert gateway.execute("SELECT observed, tier FROM routing_residencies").fetchall() == [("loaded", "gpu")]
        heard()
        Residency.objects.update(tier="cpu")
        assert heard() == []
        assert gateway.execute("SELECT observed, tier FROM routing_residencies").fetchall() == [("loaded", "cpu")]
        evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
        assert gateway.execute("SELECT observed FROM routing_residencies").fetchall() == [("draining",)]


def test_a_gateway_appends_its_records_and_reads_none(gateway_url: str) -> None:
    writer = RecordWriter(database_url=gateway_url, bound=10, flush_s=1)
    facts: dict[str, Any] = dict.fromkeys(("queue_ms", "load_ms", "ttft_ms", "total_ms"), 7)
    record = RequestRecord(
        at=timezone.now(), request_id="r1", tenant="acme", alias="support", version_id=uuid4(), node=None, tier="gpu",
        status=200, error_kind="", prompt_tokens=None, completion_tokens=3, stream=True, **facts,
    )  # fmt: skip
    writer.add(record)
    asyncio.run(writer.flush(timeout_s=5))
    kept = GatewayRequest.objects.get()
    assert (kept.request_id, kept.version_id, kept.total_ms, kept.stream) == ("r1", record.version_id, 7, True)
    with psycopg.connect(gateway_url) as gateway, pytest.raises(psycopg.errors.InsufficientPrivilege):
        gateway.execute("SELECT count(*) FROM gateway_request")


def test_moves_loads_and_losses_are_announced(
    node: Node, version: Version, heard: Callable[[], list[str]], settings: Any
) -> None:
    point_alias(name="support", version=version)
    assert "aliases" in heard()
    load(node, version)
    assert "residencies" in heard()
    evict_version(actor=make_actor(), node=node, version=version)
    assert heard() == ["residencies"]
    settings.NODE_TIMEOUT_S = -1
    tend_nodes(actor=make_actor())
    assert heard() == ["nodes"]


def test_heartbeats_and_demands_wake_nobody(node: Node, version: Version, heard: Callable[[], list[str]]) -> None:
    residency = load(node, version)
    backdate(residency, 60, "last_demand_at")
    heard()
    for _beat in range(3):
        report(node, loaded=(version.engine_name,))
    Residency.objects.filter(pk=residency.pk).update(last_demand_at=timezone.now())
    assert heard() == []


def test_the_end_of_a_load_is_told_by_name_and_once(gateway_url: str, heard: Callable[[], list[str]]) -> None:
    version = make_version()
    node = make_node(base_revision=version.base_revision, name="n1")
    warm_version(actor=make_actor(), node=node, version=version)
    heard()
    tell(node, version, Outcome.LOADED)
    assert sorted(heard()) == [f"loaded:{version.pk}", "residencies"]
    Residency.objects.update(tier="cpu", last_used_at=timezone.now())
    assert heard() == [], "an estimate and a use wake nobody"
