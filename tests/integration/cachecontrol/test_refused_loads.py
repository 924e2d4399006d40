"""What a node had no room for: another takes it, or whoever asks is told what was short."""

from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Node, Residency, VersionHeat
from cachecontrol.placement.changes import Move, Step
from cachecontrol.services.demand import demand_version
from cachecontrol.services.loads.attempts import Demand
from cachecontrol.services.loads.turns import serve_queues
from cachecontrol.services.planning.facts import read_pool
from cachecontrol.services.planning.moves import make_move
from cachecontrol.services.planning.plan import plan_pools
from cachecontrol.services.residencies import evict_version
from cachecontrol.states import DemandState, ErrorClass, Outcome
from registry.models import Version
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, make_policy, tell
from tests.factories.registry import make_actor, make_person, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def demand(version: Version) -> Demand:
    return demand_version(actor=gateway_actor(), version_id=version.pk)


def refuse(node: Node, version: Version, code: str = "disk_full") -> Residency:
    facts: dict[str, Any] = {"error_class": ErrorClass.CAPACITY, "code": code, "message": f"{code}: it is full"}
    return tell(node, version, Outcome.FAILED, **facts)


def wanted(version: Version) -> dict[str, str]:
    return dict(Residency.objects.filter(version=version).values_list("node__name", "desired"))


@pytest.mark.parametrize(("code", "left"), [("disk_full", "absent"), ("engine_full", "disk"), ("queue_full", "disk")])
def test_a_version_that_a_node_had_no_room_for_is_loaded_by_the_next_one(
    node: Node, version: Version, code: str, left: str
) -> None:
    demand(version)
    refuse(node, version, code)
    make_node(base_revision=version.base_revision, name="n2")
    assert demand(version).state is DemandState.LOADING
    assert wanted(version) == {"n1": left, "n2": "gpu"}
    assert demand(version).state is DemandState.LOADING
    assert wanted(version) == {"n1": left, "n2": "gpu"}, "it does not wander on"


def test_where_no_other_node_is_the_answer_says_what_was_short_and_when_to_come_again(
    node: Node, version: Version
) -> None:
    demand(version)
    for _attempt in range(4):
        refuse(node, version)
    found = demand(version)
    assert (found.state, found.code, found.message) == (DemandState.NO_CAPACITY, "disk_full", "disk_full: it is full")
    assert found.retry_after_s == pytest.approx(8, abs=1)
    assert wanted(version) == {"n1": "gpu"}, "the node is asked again"


def test_where_all_nodes_are_full_it_does_not_go_round_and_whoever_asks_is_told(node: Node, version: Version) -> None:
    make_node(base_revision=version.base_revision, name="n2")
    for _full in range(2):
        demand(version)
        last = refuse(Residency.objects.get(version=version, desired="gpu").node, version)
    found = demand(version)
    assert (found.state, found.code) == (DemandState.NO_CAPACITY, "disk_full")
    assert wanted(version)[last.node.name] == "gpu", "the last one is asked again"
    first = Residency.objects.get(version=version, desired="absent")
    backdate(first, 60, "given_up_at")
    assert demand(version).state is DemandState.LOADING
    assert wanted(version) == {first.node.name: "gpu", last.node.name: "absent"}, "by now it may have room"


def test_while_another_node_is_busy_the_version_waits_for_it(node: Node, version: Version) -> None:
    admin = make_actor(make_person(is_platform_admin=True))
    more = "loading: {concurrent_loads_per_node: 1}\n"
    make_policy(base_model=version.adapter.base_model, more=more, approver=admin)
    demand(version)
    refuse(node, version)
    Node.objects.filter(pk=node.pk).update(cordoned=True)
    busy, other = make_node(base_revision=version.base_revision, name="n2"), make_version(adapter=version.adapter)
    demand(other)
    assert demand(version).state is DemandState.QUEUED
    tell(busy, other, Outcome.LOADED)
    serve_queues()
    assert wanted(version) == {"n1": "absent", "n2": "gpu"}


def test_what_is_loaded_somewhere_is_loaded_wherever_else_there_was_no_room(node: Node, version: Version) -> None:
    demand(version)
    refuse(node, version)
    other = make_node(base_revision=version.base_revision)
    demand(version)
    tell(other, version, Outcome.LOADED)
    assert demand(version).state is DemandState.LOADED


def test_the_word_for_a_refusal_goes_with_the_next_try(node: Node, version: Version) -> None:
    demand(version)
    refuse(node, version)
    assert Residency.objects.get().error_code == "disk_full"
    tell(node, version, Outcome.LOADED)
    assert not Residency.objects.get().error_code
    assert demand(version).state is DemandState.LOADED


def test_a_tenant_over_its_quota_is_told_so_in_a_word(node: Node, version: Version) -> None:
    admin = make_actor(make_person(is_platform_admin=True))
    quota = "quotas: {default: {cpu_mb: {ceiling: 1}}}\n"
    make_policy(base_model=version.adapter.base_model, more=quota, approver=admin)
    files = {"adapter_model.safetensors": bytes(1_200_000)}
    found = demand(make_version(adapter=version.adapter, base_revision=version.base_revision, files=files))
    assert (found.state, found.code) == (DemandState.SHED, "over_quota")


def test_a_node_with_room_is_found_under_a_ceiling_that_the_refused_load_fills(node: Node, version: Version) -> None:
    """It holds nothing where it was refused: it must not stand in its own way."""
    admin = make_actor(make_person(is_platform_admin=True))
    quota = "quotas: {default: {cpu_mb: {ceiling: 1}}}\n"
    make_policy(base_model=version.adapter.base_model, more=quota, approver=admin)
    files = {"adapter_model.safetensors": bytes(800_000)}
    big = make_version(adapter=version.adapter, base_revision=version.base_revision, files=files)
    demand(big)
    backdate(refuse(node, big), 60, "state_changed_at", "last_demand_at")
    make_node(base_revision=version.base_revision, name="n2")
    assert demand(big).state is DemandState.LOADING
    assert wanted(big) == {"n1": "absent", "n2": "gpu"}


def given_up_at(node: Node, version: Version) -> Residency:
    """Had no room for it, whereupon another node took it, which is gone since."""
    demand(version)
    refuse(node, version)
    other = make_node(base_revision=version.base_revision, name="other")
    demand(version)
    tell(other, version, Outcome.LOADED)
    evict_version(actor=make_actor(), node=other, version=version)
    tell(other, version, Outcome.EVICTED)
    return Residency.objects.get(node=node, version=version)


@pytest.mark.parametrize("is_pinned", [False, True])
def test_the_plan_does_not_go_back_to_a_node_that_had_no_room_until_a_while_later(
    node: Node, version: Version, is_pinned: bool
) -> None:
    VersionHeat.objects.create(version=version, rate=50.0, as_of=timezone.now(), hits=50)
    refused = given_up_at(node, version)
    Node.objects.exclude(pk=node.pk).update(cordoned=True)
    if is_pinned:
        names = f"tenant: {version.adapter.tenant.name}, adapter: {version.adapter.name}, version: {version.name}"
        admin = make_actor(make_person(is_platform_admin=True))
        make_policy(base_model=version.adapter.base_model, more=f"pins: [{{{names}}}]\n", approver=admin)
    plan_pools()
    assert wanted(version) == {"n1": "absent", "other": "absent"}
    backdate(refused, 60, "given_up_at")
    plan_pools()
    assert wanted(version) == {"n1": "gpu", "other": "absent"}


@pytest.mark.parametrize("step", [Step.LOAD, Step.FETCH])
def test_a_plan_made_before_a_node_had_no_room_is_not_carried_out_there(
    node: Node, version: Version, step: Step
) -> None:
    pool = read_pool(version.base_revision.digest)
    assert pool is not None
    refused = given_up_at(node, version)
    assert not make_move(Move(step, "n1", version.pk), pool=pool)
    backdate(refused, 60, "given_up_at")
    assert make_move(Move(step, "n1", version.pk), pool=pool)


def test_files_are_not_fetched_ahead_to_a_node_that_had_no_room(node: Node, version: Version) -> None:
    admin = make_actor(make_person(is_platform_admin=True))
    more = "loading: {concurrent_loads_per_node: 1}\n"
    make_policy(base_model=version.adapter.base_model, more=more, approver=admin)
    refused = given_up_at(node, version)
    for _node in range(2):
        demand(make_version(adapter=version.adapter))
    assert demand(version).state is DemandState.QUEUED
    serve_queues()
    assert wanted(version) == {"n1": "absent", "other": "disk"}
    Residency.objects.filter(version=version).exclude(pk=refused.pk).delete()
    Node.objects.exclude(pk=node.pk).update(cordoned=True)
    serve_queues()
    assert wanted(version) == {"n1": "absent"}
    backdate(refused, 60, "given_up_at")
    serve_queues()
    assert wanted(version) == {"n1": "disk"}
