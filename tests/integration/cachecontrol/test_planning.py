"""Plans carried out, what expires, where engines are estimated to keep things, and predictions."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Eviction, GatewayRequest, Lease, LoadFailure, Node, Residency, TenantHeat, VersionHeat
from cachecontrol.placement.changes import Move, Step
from cachecontrol.services.demand import demand_version
from cachecontrol.services.estimates import estimate_tiers
from cachecontrol.services.leases import give_back_lease, take_lease
from cachecontrol.services.planning import facts
from cachecontrol.services.planning.expiry import expire_residents
from cachecontrol.services.planning.facts import Pool, read_pool
from cachecontrol.services.planning.moves import make_move
from cachecontrol.services.planning.plan import plan_pools
from cachecontrol.services.planning.predictions import predict_demand
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Outcome
from registry.actors import system_actor
from registry.models import Adapter, Version
from tests.factories.cachecontrol import backdate, load, make_node, put_in_force, put_on_disk, tell
from tests.factories.registry import make_actor, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def heat(version: Version, rate: float, **facts: Any) -> None:
    VersionHeat.objects.create(version=version, rate=rate, as_of=timezone.now(), hits=round(rate) or 1, **facts)
    TenantHeat.objects.get_or_create(tenant=version.adapter.tenant, defaults={"rate": rate, "as_of": timezone.now()})


def wanted(version: Version) -> dict[str, str]:
    return dict(Residency.objects.filter(version=version).values_list("node__name", "desired"))


def pool_of(version: Version) -> Pool:
    pool = read_pool(version.base_revision.digest)
    assert pool is not None
    return pool


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    return [make_version(adapter=adapter) for _number in range(4)]


@pytest.fixture
def nodes(versions: list[Version]) -> list[Node]:
    base = versions[0].base_revision
    return [make_node(base_revision=base, name=f"n{number}", gpu_slots=2, cpu_slots=4) for number in range(2)]


def test_what_is_asked_for_is_brought_into_an_engine_and_counts_as_hot(
    versions: list[Version], nodes: list[Node]
) -> None:
    heat(versions[0], 50.0)
    heat(versions[1], 0.001)
    plan_pools()
    assert list(wanted(versions[0]).values()) == ["gpu"]
    assert Residency.objects.get(version=versions[0]).is_hot
    assert "gpu" not in wanted(versions[1]).values()
    before = Residency.objects.count()
    tell(Residency.objects.get(version=versions[0]).node, versions[0], Outcome.LOADED)
    plan_pools()
    assert Residency.objects.count() == before, "a plan that is carried out changes nothing"


def test_what_a_lost_node_had_is_loaded_elsewhere(versions: list[Version], nodes: list[Node]) -> None:
    heat(versions[0], 50.0)
    load(nodes[0], versions[0])
    Node.objects.filter(pk=nodes[0].pk).update(status="lost")
    plan_pools()
    assert wanted(versions[0]) == {"n0": "gpu", "n1": "gpu"}


def test_a_drained_node_is_emptied_once_its_versions_are_loaded_elsewhere(
    versions: list[Version], nodes: list[Node]
) -> None:
    heat(versions[0], 50.0)
    load(nodes[0], versions[0])
    Node.objects.filter(pk=nodes[0].pk).update(draining=True)
    plan_pools()
    assert wanted(versions[0]) == {"n0": "gpu", "n1": "gpu"}, "it doesn't leave before it has arrived"
    tell(nodes[1], versions[0], Outcome.LOADED)
    for _pass in range(3):
        plan_pools()
    assert wanted(versions[0])["n0"] in ("disk", "absent")
    assert {eviction.reason for eviction in Eviction.objects.all()} == {"drain"}


def test_the_plan_leaves_what_failed_to_load_for_good_alone_for_a_while(
    versions: list[Version], nodes: list[Node]
) -> None:
    heat(versions[0], 50.0)
    LoadFailure.objects.create(version=versions[0], last_at=timezone.now())
    plan_pools()
    assert "gpu" not in wanted(versions[0]).values()
    LoadFailure.objects.update(last_at=timezone.now() - timedelta(minutes=2))
    plan_pools()
    assert "gpu" in wanted(versions[0]).values()


def test_a_node_whose_engine_is_sick_gets_nothing_new_and_is_given_up_after_a_while(
    versions: list[Version], nodes: list[Node], settings: Any
) -> None:
    heat(versions[0], 50.0)
    load(nodes[0], versions[0])
    Node.objects.filter(pk=nodes[0].pk).update(engine_healthy=False, engine_sick_since=timezone.now())
    assert [(node.is_up, node.is_open) for node in pool_of(versions[0]).nodes] == [(True, False), (True, True)]
    plan_pools()
    assert wanted(versions[0]) == {"n0": "gpu"}, "a restart is not worth a move"
    long_ago = timezone.now() - timedelta(seconds=settings.NODE_TIMEOUT_S + 1)
    Node.objects.filter(pk=nodes[0].pk).update(engine_sick_since=long_ago)
    plan_pools()
    assert wanted(versions[0]) == {"n0": "gpu", "n1": "gpu"}


def test_a_drained_node_that_died_is_sent_nothing(versions: list[Version], nodes: list[Node]) -> None:
    Node.objects.filter(pk=nodes[0].pk).update(draining=True)
    assert [node.is_up for node in pool_of(versions[0]).nodes] == [True, True]
    Node.objects.filter(pk=nodes[0].pk).update(status="lost")
    assert [node.is_up for node in pool_of(versions[0]).nodes] == [False, True]


def test_the_record_of_a_planned_move_names_the_scores_that_it_was_planned_by(
    versions: list[Version], nodes: list[Node]
) -> None:
    put_in_force(versions[0], "adapter_cache: {gpu_hot: {eviction_policy: lru}}\n")
    heat(versions[0], 1.0)
    load(nodes[0], versions[0])
    assert make_move(Move(Step.DEMOTE, "n0", versions[0].pk), pool=pool_of(versions[0]))
    eviction = Eviction.objects.get()
    assert (eviction.policy, eviction.policy_number) == ("density", 1)


def test_a_version_that_one_node_can_not_serve_alone_is_on_more(versions: list[Version], nodes: list[Node]) -> None:
    put_in_force(versions[0], "replicas: {requests_per_minute_per_node: 1, max: 2}\n")
    heat(versions[0], 500.0)
    plan_pools()
    assert wanted(versions[0]) == {"n0": "gpu", "n1": "gpu"}


def test_what_an_operator_takes_from_a_node_is_not_brought_back_by_the_plan_until_somebody_asks(
    versions: list[Version], nodes: list[Node]
) -> None:
    version, first = versions[0], nodes[0]
    heat(version, 50.0)
    load(first, version)
    evict_version(actor=make_actor(), node=first, version=version)
    tell(first, version, Outcome.EVICTED)
    Node.objects.exclude(pk=first.pk).update(cordoned=True)
    plan_pools()
    assert wanted(version) == {"n0": "absent"}

    demand_version(actor=system_actor("gateway"), version_id=version.pk)
    assert wanted(version) == {"n0": "gpu"}
    plan_pools()
    assert wanted(version) == {"n0": "gpu"}


@pytest.mark.parametrize("how", ["after_a_time", "pinned", "elsewhere"])
def test_what_was_taken_by_hand_comes_back(
    versions: list[Version], nodes: list[Node], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, first = versions[0], nodes[0]
    heat(version, 50.0)
    load(first, version)
    evict_version(actor=make_actor(), node=first, version=version)
    if how != "elsewhere":
        Node.objects.exclude(pk=first.pk).update(cordoned=True)
    if how == "after_a_time":
        monkeypatch.setattr(facts, "_BY_HAND_LASTS", timedelta(0))
    if how == "pinned":
        names = f"tenant: {version.adapter.tenant.name}, adapter: {version.adapter.name}, version: {version.name}"
        put_in_force(version, f"pins: [{{{names}}}]\n")
    plan_pools()
    assert wanted(version) == ({"n0": "absent", "n1": "gpu"} if how == "elsewhere" else {"n0": "gpu"})


def test_a_schedule_has_a_version_warm_when_nobody_asks_for_it(versions: list[Version], nodes: list[Node]) -> None:
    point_alias(name="support", version=versions[0])
    at = (timezone.now() + timedelta(minutes=5)).strftime("%H:%M")
    names = f"tenant: {versions[0].adapter.tenant.name}, adapter: {versions[0].adapter.name}, alias: support"
    put_in_force(versions[0], f'prewarm: {{schedule: [{{at: "{at}", {names}}}]}}\n')
    Residency.objects.all().delete()
    plan_pools()
    assert list(wanted(versions[0]).values()) == ["gpu"]


def test_one_worker_plans_a_pool_at_a_time(versions: list[Version], nodes: list[Node]) -> None:
    heat(versions[0], 50.0)
    name = f"plan {versions[0].base_revision.digest}"
    until = take_lease(name, lasts=timedelta(minutes=1))
    assert until
    assert not take_lease(name, lasts=timedelta(minutes=1))
    assert plan_pools() == 0
    give_back_lease(name, until=until)
    assert plan_pools() > 0
    Lease.objects.filter(name=name).update(held_until=timezone.now() - timedelta(seconds=1))
    assert take_lease(name, lasts=timedelta(minutes=1)), "a worker that was killed holds it no longer than it lasts"


def test_nobody_gives_back_a_lease_that_is_another_ones_by_now() -> None:
    late = take_lease("it", lasts=timedelta(0))
    assert late
    assert take_lease("it", lasts=timedelta(minutes=1))
    give_back_lease("it", until=late)
    assert not take_lease("it", lasts=timedelta(minutes=1))


def test_the_plan_leaves_what_is_in_use_or_on_its_way(versions: list[Version], nodes: list[Node]) -> None:
    residency = load(nodes[0], versions[0], idle_s=1)
    warm_version(actor=make_actor(), node=nodes[0], version=versions[1])
    pool = pool_of(versions[0])
    out = [Move(step, "n0", version.pk) for version in versions[:2] for step in (Step.DEMOTE, Step.DROP)]
    assert [make_move(move, pool=pool) for move in out] == [False] * 4
    backdate(residency, 3600, "state_changed_at", "last_used_at")
    assert make_move(out[0], pool=pool)


def test_the_plan_keeps_ceilings_that_were_reached_since_it_was_made(versions: list[Version]) -> None:
    tenant, adapter = versions[0].adapter.tenant.name, versions[0].adapter
    node = make_node(base_revision=versions[0].base_revision, name="n", cpu_slots=8)
    ceilings = "{cpu_mb: {ceiling: 1}, gpu_slots: {ceiling: 1}}"
    put_in_force(versions[0], f"quotas: {{tenants: {{{tenant}: {ceilings}}}}}\n")
    files = {"adapter_model.safetensors": bytes(600_000)}
    big = [make_version(adapter=adapter, files=files) for _number in range(2)]
    pool = pool_of(versions[0])
    load(node, big[0])
    assert not make_move(Move(Step.LOAD, "n", big[1].pk), pool=pool)
    assert make_move(Move(Step.LOAD, "n", versions[0].pk, is_hot=True), pool=pool)
    assert not Residency.objects.get(version=versions[0]).is_hot, "its one slot is taken"
    assert not make_move(Move(Step.HEAT, "n", versions[0].pk), pool=pool)


def test_a_plan_that_is_older_than_the_policy_keeps_the_ceilings_of_the_policy(
    versions: list[Version], nodes: list[Node]
) -> None:
    pool = pool_of(versions[0])
    put_in_force(versions[0], "quotas: {default: {gpu_slots: {ceiling: 1}}}\n")
    for version in versions[:2]:
        make_move(Move(Step.LOAD, "n0", version.pk, is_hot=True), pool=pool)
    make_move(Move(Step.HEAT, "n0", versions[1].pk), pool=pool)
    assert list(Residency.objects.order_by("pk").values_list("is_hot", flat=True)) == [True, False]


def test_what_is_idle_in_an_engine_for_too_long_goes_to_the_disk_and_then_goes(
    versions: list[Version], nodes: list[Node]
) -> None:
    put_in_force(versions[0], "adapter_cache: {cpu_warm: {ttl_minutes: 30}, disk_cache: {ttl_minutes: 300}}\n")
    load(nodes[0], versions[0], idle_s=3600)
    load(nodes[0], versions[1], idle_s=60)
    put_on_disk(nodes[0], versions[2], idle_s=6 * 3600)
    put_on_disk(nodes[0], versions[3], idle_s=3600)
    before = Eviction.objects.count()
    assert expire_residents() == 2
    assert [wanted(version)["n0"] for version in versions] == ["disk", "gpu", "absent", "disk"]
    found = Eviction.objects.order_by("pk")[before:]
    assert sorted((one.tier, one.to_tier, one.reason) for one in found) == [
        ("disk", "remote", "ttl"),
        ("gpu", "disk", "ttl"),
    ]


def test_above_its_high_water_mark_an_engine_is_emptied_down_to_the_low_one(versions: list[Version]) -> None:
    node = make_node(base_revision=versions[0].base_revision, gpu_slots=1, cpu_slots=4)
    put_in_force(versions[0], "adapter_cache: {cpu_warm: {high_water: 0.9, low_water: 0.5}}\n")
    for version, rate in zip(versions, (9.0, 0.1, 8.0, 0.2), strict=True):
        load(node, version)
        heat(version, rate)
    assert expire_residents() == 2
    assert [wanted(version)[node.name] for version in versions] == ["gpu", "disk", "gpu", "disk"]
    assert {one.reason for one in Eviction.objects.all()} == {"idle"}


def test_the_plan_fills_an_engine_and_a_disk_no_further_than_the_high_water_mark(versions: list[Version]) -> None:
    """Else what it brings is emptied out again by the next pass."""
    make_node(base_revision=versions[0].base_revision, gpu_slots=1, cpu_slots=4, disk_bytes=1000)
    put_in_force(versions[0], "adapter_cache: {cpu_warm: {high_water: 0.9, low_water: 0.5}}\n")
    (node,) = pool_of(versions[0]).nodes
    assert (node.places, node.disk_bytes) == (3, 900)


def test_where_too_little_may_leave_an_engine_all_of_that_does(versions: list[Version]) -> None:
    node = make_node(base_revision=versions[0].base_revision, gpu_slots=1, cpu_slots=4)
    put_in_force(versions[0], "adapter_cache: {cpu_warm: {high_water: 0.9, low_water: 0.25}}\n")
    for version, idle_s in zip(versions, (3600, 0, 0, 3600), strict=True):
        load(node, version, idle_s=idle_s)
    assert expire_residents() == 2
    assert [wanted(version)[node.name] for version in versions] == ["disk", "gpu", "gpu", "disk"]


def test_a_full_disk_loses_what_is_worth_least_for_its_size(adapter: Adapter) -> None:
    sizes = (100_000, 800_000, 100_000)
    versions = [make_version(adapter=adapter, files={"adapter_model.safetensors": bytes(size)}) for size in sizes]
    node = make_node(base_revision=versions[0].base_revision, disk_bytes=1_000_000)
    put_in_force(versions[0], "adapter_cache: {gpu_hot: {eviction_policy: lru}}\n")
    for version in versions:
        put_on_disk(node, version)
    heat(versions[1], 1.0)
    heat(versions[0], 1.0)
    assert expire_residents() >= 1
    assert wanted(versions[1])[node.name] == "absent"
    assert wanted(versions[0])[node.name] == "disk"
    last = Eviction.objects.get(version=versions[1], reason="pressure")
    assert last.policy == "density"
    assert "size" in last.factors


def test_the_least_recent_in_an_engine_are_estimated_to_be_out_of_its_slots(
    versions: list[Version], nodes: list[Node]
) -> None:
    for version, idle_s in zip(versions, (100, 400, 200, 300), strict=True):
        load(nodes[0], version, idle_s=idle_s)
    estimate_tiers()
    assert list(Residency.objects.order_by("pk").values_list("tier", "tier_is_estimate")) == [
        ("gpu", True),
        ("cpu", True),
        ("gpu", True),
        ("cpu", True),
    ]
    Residency.objects.filter(version=versions[1]).update(last_used_at=timezone.now())
    assert estimate_tiers() == 2
    assert Residency.objects.get(version=versions[1]).tier == "gpu"
    assert Residency.objects.get(version=versions[2]).tier == "cpu"


def test_what_was_unloaded_keeps_its_slot_until_others_push_it_out(versions: list[Version]) -> None:
    """As vLLM does it: an unload only forgets the name."""
    node = make_node(base_revision=versions[0].base_revision, gpu_slots=2, cpu_slots=4)
    load(node, versions[0], idle_s=100)
    load(node, versions[1], idle_s=50)
    load(node, versions[2], idle_s=10)
    evict_version(actor=make_actor(), node=node, version=versions[2])
    tell(node, versions[2], Outcome.EVICTED)
    estimate_tiers()
    tiers = dict(Residency.objects.values_list("version", "tier"))
    assert [tiers[version.pk] for version in versions[:3]] == ["cpu", "gpu", ""]


def test_what_a_node_told_is_no_estimate(versions: list[Version], nodes: list[Node]) -> None:
    load(nodes[0], versions[0])
    Residency.objects.update(tier="cpu", tier_is_estimate=False)
    assert estimate_tiers() == 0
    assert Residency.objects.get().tier == "cpu"


def test_a_version_with_a_daily_rhythm_is_expected_at_its_hour(versions: list[Version], nodes: list[Node]) -> None:
    put_in_force(versions[0], "prewarm: {predicted: true}\n")
    heat(versions[0], 0.0)
    VersionHeat.objects.update(hits=240)
    now = timezone.now()
    facts = dict.fromkeys(("queue_ms", "load_ms", "ttft_ms", "total_ms"), 1) | dict.fromkeys(
        ("request_id", "tenant", "alias", "tier", "error_kind"), ""
    )
    GatewayRequest.objects.bulk_create(
        GatewayRequest(
            at=now - timedelta(days=day) + timedelta(minutes=minute),
            version_id=versions[0].pk,
            status=200,
            stream=False,
            **facts,
        )
        for day in range(1, 7)
        for minute in range(0, 60, 2)
    )
    assert predict_demand() == 1
    assert VersionHeat.objects.get().predicted_per_h > 1
    assert predict_demand() == 0, "not again so soon"
    plan_pools()
    assert list(wanted(versions[0]).values()) == ["gpu"]
