"""The passes over all nodes: each asks once for all of them, and one worker does what need not be done twice."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cachecontrol.models import Lease, Node, Residency
from cachecontrol.policies import active_policy
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.services import estimates
from cachecontrol.services.estimates import estimate_tiers
from cachecontrol.services.leases import take_lease
from cachecontrol.services.places import places_on
from cachecontrol.services.planning import expiry
from cachecontrol.services.planning.expiry import expire_residents
from cachecontrol.services.residencies import evict_version
from cachecontrol.states import Desired, Outcome
from registry.models import Adapter, Version
from tests.factories.cachecontrol import beat, load, make_node, put_in_force, put_on_disk, tell
from tests.factories.registry import make_actor, make_adapter, make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def queries_of(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as queries:
        act()
    return len(queries)


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    return [make_version(adapter=adapter) for _number in range(3)]


def filled_node(name: str, versions: list[Version]) -> Node:
    """A node with two versions in its engine, and one unloaded from it that takes one of two slots until pushed out."""
    node = make_node(base_revision=versions[0].base_revision, name=name, gpu_slots=2, cpu_slots=4)
    for version in versions:
        load(node, version)
    evict_version(actor=make_actor(), node=node, version=versions[2], to=Desired.DISK)
    tell(node, versions[2], Outcome.ON_DISK)
    return node


def forget_tiers() -> None:
    Residency.objects.update(tier="", tier_is_estimate=False)


def test_estimating_asks_no_more_often_for_more_nodes_nor_for_more_that_has_changed(versions: list[Version]) -> None:
    filled_node("n0", versions)
    forget_tiers()
    estimate_tiers()
    forget_tiers()
    asked = queries_of(estimate_tiers)
    for number in range(1, 20):
        filled_node(f"n{number}", versions)
    forget_tiers()
    again = queries_of(estimate_tiers)
    tiers = Residency.objects.order_by("node__name", "pk").values_list("tier", flat=True)
    assert list(tiers) == ["cpu", "gpu", "disk"] * 20
    assert again == asked


@pytest.mark.parametrize("said", [{"observed": "draining"}, {"tier": "cpu", "tier_is_estimate": False}])
def test_what_was_said_of_a_version_while_its_tier_was_estimated_stays(
    versions: list[Version], monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]
) -> None:
    """A command's outcome, or an engine that tells where it has everything."""
    node = make_node(base_revision=versions[0].base_revision)
    residency = load(node, versions[0])
    forget_tiers()
    read = estimates._changes

    def and_then_it_is_said() -> object:
        found = read()
        Residency.objects.filter(pk=residency.pk).update(**said)
        return found

    monkeypatch.setattr(estimates, "_changes", and_then_it_is_said)
    assert estimate_tiers() == 0
    residency.refresh_from_db()
    assert residency.tier == said.get("tier", "")


def test_one_worker_estimates_at_a_time(versions: list[Version]) -> None:
    load(make_node(base_revision=versions[0].base_revision), versions[0])
    forget_tiers()
    assert take_lease("estimate tiers", lasts=timedelta(minutes=1))
    assert estimate_tiers() == 0
    Lease.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    forget_tiers()
    assert estimate_tiers() == 1
    forget_tiers()
    assert estimate_tiers() == 1, "the lease was given back"


def test_looking_for_what_expires_asks_no_more_often_for_more_nodes(versions: list[Version]) -> None:
    filled_node("n0", versions)
    expire_residents()
    asked = queries_of(expire_residents)
    for number in range(1, 20):
        filled_node(f"n{number}", versions)
    assert queries_of(expire_residents) == asked


def test_one_nodes_trouble_keeps_nothing_on_the_others(
    versions: list[Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_force(versions[0], "adapter_cache: {cpu_warm: {ttl_minutes: 30}}\n")
    for name in ("n0", "n1"):
        load(make_node(base_revision=versions[0].base_revision, name=name), versions[0])

    def with_trouble(node: Node, *rest: object) -> int:
        if node.name == "n0":
            raise RuntimeError(node.name)
        return places_on(node, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(expiry, "places_on", with_trouble)
    assert expire_residents() == 1
    assert dict(Residency.objects.values_list("node__name", "desired")) == {"n0": "gpu", "n1": "disk"}


def test_trouble_with_one_base_models_policy_keeps_nothing_on_nodes_of_another(
    versions: list[Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_version()
    nodes = [make_node(base_revision=one.base_revision) for one in (versions[0], other)]
    for node, version in zip(nodes, (versions[0], other), strict=True):
        put_in_force(version, "adapter_cache: {cpu_warm: {ttl_minutes: 30}}\n")
        load(node, version)

    def with_trouble(node: Node) -> PolicyInForce:
        if node.pk == nodes[0].pk:
            raise RuntimeError(node.name)
        return active_policy(node)

    monkeypatch.setattr(expiry, "active_policy", with_trouble)
    assert expire_residents() == 1
    assert [Residency.objects.get(node=node).desired for node in nodes] == ["gpu", "disk"]


def test_a_node_is_told_what_floors_keep_there_without_asking_for_each_tenant(version: Version) -> None:
    node = make_node(base_revision=version.base_revision, cpu_slots=20)

    def floored(number: int) -> None:
        made = []
        for _tenant in range(number):
            adapter = make_adapter(tenant=make_tenant(), base_model=version.adapter.base_model)
            made.append(make_version(adapter=adapter, base_revision=version.base_revision))
        for one in made:
            put_on_disk(node, one)
        tenants = Residency.objects.values_list("version__adapter__tenant__name", flat=True)
        floors = ", ".join(f"{tenant}: {{disk_mb: {{floor: 5}}}}" for tenant in tenants)
        put_in_force(version, f"quotas: {{tenants: {{{floors}}}}}\n")

    def told() -> list[str]:
        names = Residency.objects.values_list("version__engine_name", flat=True)
        found = beat(node, on_disk=tuple(names)).limits["guaranteed"]
        assert isinstance(found, list)
        return found

    floored(1)
    told()
    asked = queries_of(told)
    floored(19)
    told()
    assert queries_of(told) == asked
    assert told() == sorted(Residency.objects.values_list("version__engine_name", flat=True))
    assert len(told()) == 20
