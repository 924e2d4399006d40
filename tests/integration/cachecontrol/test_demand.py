"""What gateways ask for: places, victims with their records, the load queue, quotas, and the command that leaves."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Eviction, LoadFailure, LoadRequest, Node, Residency, VersionHeat
from cachecontrol.services.demand import demand_version, prewarm_version
from cachecontrol.services.evictions import Victim, evict_victim
from cachecontrol.services.loads import turns
from cachecontrol.services.loads.attempts import Demand
from cachecontrol.services.loads.turns import serve_pool, serve_queues
from cachecontrol.services.places import residents_of
from cachecontrol.services.residencies import warm_version
from cachecontrol.states import DemandState, Desired, ErrorClass, EvictionReason, LoadState, Outcome
from registry.models import Adapter, AuditRecord, Tenant, Version
from registry.states import Role
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, put_in_force, tell
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_member,
    make_tenant,
    make_version,
)
from tests.factories.releases import point_alias
from tests.integration.cachecontrol.conftest import NodeQueues

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def demand(version: Version, **facts: Any) -> Demand:
    return demand_version(actor=gateway_actor(), version_id=version.pk, **facts)


def load(node: Node, version: Version, *, idle_s: float = 3600) -> Residency:
    """The version loaded on the node by a demand, and not used for ``idle_s`` seconds."""
    assert demand(version).state is DemandState.LOADING
    residency = tell(node, version, Outcome.LOADED, timings_ms={"load": 40})
    backdate(residency, idle_s, "state_changed_at", "created_at", "last_demand_at")
    residency.refresh_from_db()
    return residency


def of_tenant(version: Version, tenant: Tenant | None = None) -> Version:
    """A version of another tenant for the same base revision."""
    adapter = make_adapter(tenant=tenant or make_tenant(), base_model=version.adapter.base_model)
    return make_version(adapter=adapter, base_revision=version.base_revision)


def sized(like: Version, size: int, tenant: Tenant | None = None) -> Version:
    """A version of so many bytes for the same base revision, of the same tenant if no other is named."""
    adapter = like.adapter if tenant is None else make_adapter(tenant=tenant, base_model=like.adapter.base_model)
    files = {"adapter_model.safetensors": bytes(size)}
    return make_version(adapter=adapter, base_revision=like.base_revision, files=files)


def heat(version: Version, rate: float) -> None:
    VersionHeat.objects.create(version=version, rate=rate, as_of=timezone.now(), hits=round(rate))


def states() -> list[str]:
    return list(LoadRequest.objects.order_by("pk").values_list("state", flat=True))


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    return [make_version(adapter=adapter) for _number in range(5)]


@pytest.fixture
def small(versions: list[Version]) -> Node:
    """A node with two places."""
    return make_node(base_revision=versions[0].base_revision, name="small", gpu_slots=1, cpu_slots=2)


def test_the_coldest_version_makes_room_and_the_record_says_why(versions: list[Version], small: Node) -> None:
    for version, rate in zip(versions, (1.0, 50.0), strict=False):
        heat(version, rate)
        load(small, version)
    assert demand(versions[2]).state is DemandState.LOADING
    gone = Residency.objects.get(version=versions[0])
    assert (gone.desired, gone.is_hot) == ("disk", False)
    eviction = Eviction.objects.get()
    assert (eviction.version, eviction.node, eviction.tier, eviction.to_tier) == (versions[0], small, "gpu", "disk")
    assert (eviction.reason, eviction.policy, eviction.policy_number) == ("room", "density", None)
    assert eviction.runner_up == versions[1]
    assert eviction.asked_by == versions[2].adapter.tenant.name
    assert eviction.score is not None
    assert eviction.runner_up_score is not None
    assert eviction.score < eviction.runner_up_score
    assert sum(eviction.factors.values()) == pytest.approx(eviction.score)


def test_what_was_just_asked_for_is_not_cold_before_its_request_is_counted(
    versions: list[Version], small: Node
) -> None:
    heat(versions[0], 0.5)
    VersionHeat.objects.update(last_used_at=timezone.now())
    load(small, versions[0], idle_s=60)
    load(small, versions[1], idle_s=60)
    demand(versions[2])
    assert Eviction.objects.get().version == versions[0]


def test_what_was_never_measured_is_taken_to_cost_what_the_others_do(versions: list[Version], small: Node) -> None:
    for version, rate in zip(versions, (3.0, 2.0), strict=False):
        heat(version, rate)
        load(small, version)
    Residency.objects.filter(version=versions[1]).update(load_ms=None)
    demand(versions[2])
    eviction = Eviction.objects.get()
    assert (eviction.version, eviction.runner_up) == (versions[1], versions[0])


def test_the_policy_in_force_scores_and_is_named(versions: list[Version], small: Node) -> None:
    put_in_force(versions[0], "adapter_cache: {gpu_hot: {eviction_policy: lru}}\n")
    for version, idle_s in zip(versions, (60, 4000), strict=False):
        load(small, version, idle_s=idle_s)
    demand(versions[2])
    eviction = Eviction.objects.get()
    assert (eviction.version, eviction.policy, eviction.policy_number) == (versions[1], "lru", 1)


def test_what_an_alias_points_to_may_leave_when_nobody_asks_for_it(versions: list[Version], small: Node) -> None:
    point_alias(name="support", version=versions[0])
    for version in versions[:2]:
        load(small, version)
    heat(versions[1], 9.0)
    assert demand(versions[2]).state is DemandState.LOADING
    assert Residency.objects.get(version=versions[0]).desired == "disk"


def test_a_pinned_version_never_leaves(versions: list[Version], small: Node) -> None:
    pin = versions[0]
    Node.objects.filter(pk=small.pk).update(gpu_slots=2)
    names = f"tenant: {pin.adapter.tenant.name}, adapter: {pin.adapter.name}, version: {pin.name}"
    put_in_force(pin, f"pins: [{{{names}}}]\n")
    for version in versions[:2]:
        load(small, version)
    heat(versions[1], 99.0)
    demand(versions[2])
    assert Residency.objects.get(version=pin).desired == "gpu"
    assert Residency.objects.get(version=versions[1]).desired == "disk"


def test_what_is_in_use_does_not_make_room_and_the_newcomer_waits(versions: list[Version], small: Node) -> None:
    load(small, versions[0], idle_s=2)
    load(small, versions[1])
    answer = demand(versions[2], in_flight=[versions[1].pk])
    assert (answer.state, answer.position) == (DemandState.QUEUED, 1)
    assert Residency.objects.filter(desired="gpu").count() == 2
    request = LoadRequest.objects.get(version=versions[2])
    assert (request.state, request.pool) == ("queued", versions[2].base_revision.digest)
    assert demand(versions[2], waiting=9).position == 1
    request.refresh_from_db()
    assert request.waiting == 9


def test_a_version_that_answers_through_any_gateway_is_in_use_for_the_queue_too(
    versions: list[Version], small: Node
) -> None:
    for version in versions[:2]:
        load(small, version)
    demand(versions[0], in_flight=[versions[0].pk, versions[1].pk])
    assert demand(versions[2]).state is DemandState.QUEUED
    serve_pool(versions[2].base_revision.digest)
    assert Residency.objects.filter(desired="gpu").count() == 2


def test_a_place_in_use_is_looked_at_again_shortly_and_once_for_all_who_wait(
    versions: list[Version],
    small: Node,
    sent: list[Any],
    django_capture_on_commit_callbacks: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_LOOK_AGAIN", timedelta(minutes=1))
    for version in versions[:2]:
        load(small, version)
    sent.clear()
    with django_capture_on_commit_callbacks(execute=True):
        for version in versions[2:4]:
            assert demand(version, in_flight=[held.pk for held in versions[:2]]).state is DemandState.QUEUED
    looks = [args for task, args in sent if task == "workers.tasks.serve_load_queue"]
    assert looks == [{"pool": versions[0].base_revision.digest}]


def test_no_more_loads_run_on_a_node_than_the_policy_allows_and_the_rest_waits(versions: list[Version]) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 2}\n")
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    answers = [demand(version).state for version in versions]
    assert answers == [DemandState.LOADING] * 2 + [DemandState.QUEUED] * 3
    tell(node, versions[0], Outcome.LOADED)
    serve_queues()
    assert states() == ["done", "placed", "placed", "queued", "queued"]


def test_the_end_of_a_load_nudges_the_queue(
    versions: list[Version], sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 1}\n")
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    for version in versions[:2]:
        demand(version)
    with django_capture_on_commit_callbacks(execute=True):
        tell(node, versions[0], Outcome.LOADED)
    assert ("workers.tasks.serve_load_queue", {"pool": versions[0].base_revision.digest}) in sent


def test_a_full_queue_sheds_with_a_time_to_come_again(versions: list[Version]) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 1, queue_limit: 2, queue_share_per_tenant: 1.0}\n")
    make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    answers = [demand(version) for version in versions]
    assert [answer.state for answer in answers[1:]] == [DemandState.QUEUED] * 2 + [DemandState.SHED] * 2
    assert answers[3].message == "Too many loads wait already."
    assert answers[3].retry_after_s
    assert demand(versions[2]).state is DemandState.QUEUED


def test_a_tenant_that_floods_the_queue_is_shed_and_others_come_in_turn(versions: list[Version]) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 1, queue_limit: 4, queue_share_per_tenant: 0.5}\n")
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    flood = [demand(version).state for version in versions]
    assert flood == [DemandState.LOADING] + [DemandState.QUEUED] * 2 + [DemandState.SHED] * 2
    other = of_tenant(versions[0])
    assert demand(other).state is DemandState.QUEUED
    tell(node, versions[0], Outcome.LOADED)
    serve_queues()
    assert Residency.objects.get(version=other).desired == "gpu"
    assert LoadRequest.objects.get(version=versions[1]).state == "queued"


def test_who_has_had_its_loads_for_the_minute_waits_and_stands_in_nobodys_way(versions: list[Version]) -> None:
    tenant = versions[0].adapter.tenant.name
    put_in_force(versions[0], f"quotas: {{tenants: {{{tenant}: {{loads_per_minute: 2}}}}}}\n")
    make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    answers = [demand(version).state for version in versions[:3]]
    assert answers == [DemandState.LOADING] * 2 + [DemandState.QUEUED]
    assert demand(of_tenant(versions[0])).state is DemandState.LOADING
    serve_queues()
    assert LoadRequest.objects.get(version=versions[2]).state == "queued"
    LoadRequest.objects.filter(state="placed").update(placed_at=timezone.now() - timedelta(seconds=61))
    serve_queues()
    assert Residency.objects.get(version=versions[2]).desired == "gpu"


def test_nobody_waits_past_the_deadline(versions: list[Version], small: Node) -> None:
    load(small, versions[0], idle_s=0)
    load(small, versions[1], idle_s=0)
    assert demand(versions[2], longest=timedelta(milliseconds=1)).state is DemandState.QUEUED
    LoadRequest.objects.filter(state="queued").update(deadline_at=timezone.now())
    Residency.objects.update(state_changed_at=timezone.now() - timedelta(hours=1), last_demand_at=None)
    serve_queues()
    assert LoadRequest.objects.get(version=versions[2]).state == LoadState.EXPIRED
    assert not Residency.objects.filter(version=versions[2]).exists()


def test_nobody_waits_longer_than_its_tenants_class_of_service_says(versions: list[Version], small: Node) -> None:
    put_in_force(versions[0], "sla_classes: {standard: {wait_s: 4}}\n")
    first = demand(versions[0])
    assert (first.state, first.wait_s) == (DemandState.LOADING, 4.0)
    assert demand(versions[0]).wait_s == 4.0
    demand(versions[1])
    assert demand(versions[2], longest=timedelta(seconds=30)).wait_s == 4.0
    left = LoadRequest.objects.get(version=versions[2]).deadline_at - timezone.now()
    assert left <= timedelta(seconds=4)


def test_who_comes_next_gets_its_files_before_there_is_a_place(versions: list[Version]) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 1}\n")
    make_node(base_revision=versions[0].base_revision, cpu_slots=8, name="n")
    for version in versions[:2]:
        demand(version)
    serve_queues()
    ahead = Residency.objects.get(version=versions[1])
    assert (ahead.desired, ahead.node.name) == ("disk", "n")
    assert AuditRecord.objects.filter(object__id=str(ahead.pk)).count() == 1
    serve_queues()
    ahead.refresh_from_db()
    assert ahead.generation == 1
    assert demand(versions[1]).tier == "remote"


def test_a_queued_version_that_fails_for_good_leaves_the_queue(versions: list[Version]) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 1}\n")
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    for version in versions[:2]:
        demand(version)
    tell(node, versions[0], Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="bad")
    serve_queues()
    assert states() == ["refused", "placed"]


def test_what_failed_for_good_is_placed_again_after_longer_and_longer_pauses(
    versions: list[Version], small: Node
) -> None:
    """Each such load costs its node a restart of the engine; that it left meanwhile changes nothing."""
    broken = versions[0]
    failed = {"error_class": ErrorClass.PERMANENT, "message": "its weights don't fit"}
    for minutes in (1, 5, 25, 60, 60):
        assert demand(broken).state is DemandState.LOADING
        tell(small, broken, Outcome.FAILED, **failed)
        Residency.objects.filter(version=broken).delete()
        answer = demand(broken)
        assert (answer.state, answer.message) == (DemandState.FAILED, "its weights don't fit")
        assert answer.retry_after_s == pytest.approx(minutes * 60, abs=5)
        LoadFailure.objects.update(last_at=timezone.now() - timedelta(minutes=minutes))
    assert demand(broken).state is DemandState.LOADING
    tell(small, broken, Outcome.LOADED)
    assert not LoadFailure.objects.exists(), "a good load is a new beginning"


def test_above_its_ceiling_a_tenant_makes_room_among_its_own_though_there_is_room(versions: list[Version]) -> None:
    tenant, other = versions[0].adapter.tenant.name, of_tenant(versions[0])
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    put_in_force(versions[0], f"quotas: {{tenants: {{{tenant}: {{cpu_mb: {{ceiling: 1}}}}}}}}\n")
    load(node, other)
    big = [sized(versions[0], 600_000) for _number in range(3)]
    load(node, big[0])
    assert demand(big[1]).state is DemandState.LOADING
    assert Residency.objects.get(version=big[0]).desired == "disk"
    assert Eviction.objects.get().reason == "quota"
    assert Residency.objects.get(version=other).desired == "gpu"
    assert demand(big[2]).state is DemandState.QUEUED, "its own one is still on its way"


def test_what_is_larger_than_its_tenants_ceiling_is_refused_with_the_reason(version: Version, node: Node) -> None:
    tenant = version.adapter.tenant.name
    put_in_force(version, f"quotas: {{tenants: {{{tenant}: {{cpu_mb: {{ceiling: 1}}}}}}}}\n")
    answer = demand(sized(version, 2_000_000))
    assert answer.state is DemandState.SHED
    assert "1000000 CPU bytes" in answer.message
    assert answer.retry_after_s


def test_a_floor_is_not_taken_by_others(versions: list[Version], small: Node) -> None:
    guarded = sized(versions[0], 1_000_000)
    third, newcomer = (sized(guarded, 1_000_000, make_tenant()) for _number in range(2))
    tenant = guarded.adapter.tenant.name
    Node.objects.filter(pk=small.pk).update(memory_bytes=64_000_000)
    put_in_force(guarded, f"quotas: {{tenants: {{{tenant}: {{cpu_mb: {{floor: 1}}}}}}}}\n")
    load(small, guarded)
    load(small, third)
    heat(third, 500.0)
    assert demand(newcomer).state is DemandState.LOADING
    assert Residency.objects.get(version=guarded).desired == "gpu"
    assert Residency.objects.get(version=third).desired == "disk"


def test_below_its_floor_a_tenant_gives_up_its_own_where_nobody_else_may_leave(
    versions: list[Version], small: Node
) -> None:
    own = sized(versions[0], 1_000_000)
    in_use = sized(own, 1_000_000, make_tenant())
    put_in_force(own, f"quotas: {{tenants: {{{own.adapter.tenant.name}: {{cpu_mb: {{floor: 5}}}}}}}}\n")
    load(small, own)
    load(small, in_use, idle_s=0)
    assert demand(sized(own, 1_000_000)).state is DemandState.LOADING
    assert Residency.objects.get(version=in_use).desired == "gpu"
    assert Residency.objects.get(version=own).desired == "disk"


def test_a_budget_of_bytes_makes_room_by_size(versions: list[Version]) -> None:
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8, memory_bytes=2_500_000)
    big = [sized(versions[0], 1_000_000) for _number in range(3)]
    load(node, big[0])
    load(node, big[1])
    heat(big[0], 9.0)
    assert demand(big[2]).state is DemandState.LOADING
    assert Residency.objects.get(version=big[1]).desired == "disk"
    assert "size" in Eviction.objects.get().factors


def test_the_first_in_the_slots_count_as_hot_and_the_rest_as_warm(versions: list[Version]) -> None:
    make_node(base_revision=versions[0].base_revision, gpu_slots=2, cpu_slots=4)
    for version in versions[:3]:
        demand(version)
    assert list(Residency.objects.order_by("pk").values_list("is_hot", flat=True)) == [True, True, False]


def test_the_answer_says_where_the_version_is(versions: list[Version], small: Node) -> None:
    assert demand(versions[0]).tier == "remote"
    tell(small, versions[0], Outcome.LOADED)
    Residency.objects.update(desired=Desired.DISK.value, observed="on_disk", is_hot=False)
    assert demand(versions[0]).tier == "disk"


def test_the_command_leaves_with_the_demand(
    node: Node, version: Version, queues: NodeQueues, django_capture_on_commit_callbacks: Any
) -> None:
    """No worker is needed for it, and a worker that looks as well sends it no second time."""
    with django_capture_on_commit_callbacks(execute=True):
        demand(version)
    assert queues.tasks == ["node.warm"]


def test_a_release_prewarms_unless_the_policy_says_no(version: Version, node: Node) -> None:
    put_in_force(version, "prewarm: {on_release: false}\n")
    prewarm_version(actor=make_member(version.adapter.tenant, Role.RELEASE_MANAGER), version_id=version.pk)
    assert not Residency.objects.exists()


def test_a_cordoned_node_gets_nothing_new_and_goes_on_serving(version: Version, node: Node) -> None:
    load(node, version)
    Node.objects.update(cordoned=True)
    assert demand(version).state is DemandState.LOADED
    assert demand(make_version(adapter=version.adapter)).state is DemandState.NO_NODE


@pytest.mark.parametrize("mark", [{"draining": True}, {"poisoned": True}, {"recycling_since": timezone.now()}])
def test_a_node_that_is_being_emptied_or_can_not_be_trusted_does_not_count(
    version: Version, node: Node, mark: dict[str, Any]
) -> None:
    load(node, version)
    Node.objects.update(**mark)
    assert demand(version).state is DemandState.NO_NODE
    other = make_node(base_revision=version.base_revision)
    assert demand(version).state is DemandState.LOADING
    assert Residency.objects.filter(node=other, desired="gpu").exists()


def test_a_cold_demand_that_makes_room_takes_few_queries(
    versions: list[Version],
    small: Node,
    queues: NodeQueues,
    django_assert_max_num_queries: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    for version in versions[:2]:
        load(small, version)
    with django_assert_max_num_queries(27), django_capture_on_commit_callbacks(execute=True):
        assert demand(versions[2]).state is DemandState.LOADING
    assert queues.tasks == ["node.warm"]


def test_a_turn_does_not_make_a_load_wait_longer(versions: list[Version], small: Node) -> None:
    """Else what nobody waits for any more would never leave the queue."""
    for version in versions[:2]:
        load(small, version, idle_s=0)
    demand(versions[2], longest=timedelta(seconds=2))
    deadline = LoadRequest.objects.get(version=versions[2]).deadline_at
    serve_queues()
    assert LoadRequest.objects.get(version=versions[2]).deadline_at == deadline
    assert demand(versions[3], longest=timedelta()).state is DemandState.QUEUED
    assert LoadRequest.objects.get(version=versions[3]).deadline_at <= timezone.now()


def test_nobody_leaves_for_a_version_that_would_not_fit_even_then(versions: list[Version]) -> None:
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8, memory_bytes=2_500_000)
    big = [sized(versions[0], 1_000_000) for _number in range(2)]
    for version in big:
        load(node, version)
    assert demand(sized(versions[0], 3_000_000)).state is DemandState.NO_CAPACITY
    assert demand(sized(versions[0], 2_000_000), in_flight=[big[0].pk]).state is DemandState.QUEUED
    assert not Eviction.objects.exists()


def test_as_many_leave_for_a_large_version_as_it_takes(versions: list[Version]) -> None:
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8, memory_bytes=2_500_000)
    for version in [sized(versions[0], 300_000) for _number in range(8)]:
        load(node, version)
    assert demand(sized(versions[0], 2_400_000)).state is DemandState.LOADING


def test_room_that_is_made_but_not_used_yet_is_waited_for_in_the_queue(
    versions: list[Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=4, memory_bytes=2_500_000)
    for version in [sized(versions[0], 800_000) for _number in range(3)]:
        load(node, version)
    monkeypatch.setattr("cachecontrol.services.loads.attempts._TRIES", 1)
    large = sized(versions[0], 2_400_000)
    assert demand(large).position == 1
    assert Eviction.objects.count() == 1, "one victim in a transaction"
    for _pass in range(3):
        serve_queues()
    assert Residency.objects.get(version=large).desired == "gpu"


def test_what_was_used_since_it_was_looked_at_does_not_leave(versions: list[Version], small: Node) -> None:
    residency = load(small, versions[0])
    (known,) = residents_of([small], half_life=timedelta(minutes=30))[small.pk]
    facts: dict[str, Any] = {"actor": gateway_actor(), "node": small, "asked_by": "", "reason": EvictionReason.ROOM}
    demand(versions[0])
    assert not evict_victim(victim=Victim(known, None), **facts)
    backdate(residency, 7200, "last_demand_at")
    assert evict_victim(victim=Victim(known, None), **facts)


def test_what_nobody_had_used_when_it_was_looked_at_does_not_leave_once_somebody_has(
    versions: list[Version], small: Node
) -> None:
    warm_version(actor=make_actor(), node=small, version=versions[0])
    (known,) = residents_of([small], half_life=timedelta(minutes=30))[small.pk]
    assert known.used_at is None
    demand(versions[0])
    facts: dict[str, Any] = {"actor": gateway_actor(), "node": small, "asked_by": "", "reason": EvictionReason.ROOM}
    assert not evict_victim(victim=Victim(known, None), **facts)


def test_a_version_in_an_engine_that_is_not_well_is_loaded_where_one_is(version: Version, node: Node) -> None:
    load(node, version)
    Node.objects.filter(pk=node.pk).update(engine_healthy=False)
    sick = make_node(base_revision=version.base_revision, engine_healthy=False)
    assert demand(version).state is DemandState.LOADING
    assert not Residency.objects.filter(node=sick).exists()
    other = make_node(base_revision=version.base_revision)
    assert demand(version).state is DemandState.LOADING
    assert Residency.objects.filter(node=other, desired="gpu").exists()


def test_who_waits_for_the_only_node_of_its_rank_holds_up_nobody_else(version: Version) -> None:
    base, adapter = version.base_revision, version.adapter
    wide = [make_version(adapter=adapter, rank=64) for _number in range(2)]
    put_in_force(version, "loading: {concurrent_loads_per_node: 1}\n")
    make_node(base_revision=base, cpu_slots=8, max_rank=64)
    assert [demand(one).state for one in wide] == [DemandState.LOADING, DemandState.QUEUED]
    make_node(base_revision=base, cpu_slots=8, max_rank=16)
    assert demand(version).state is DemandState.LOADING


def test_loads_that_fail_again_and_again_take_neither_turns_nor_places_from_others(
    versions: list[Version], small: Node
) -> None:
    put_in_force(versions[0], "loading: {concurrent_loads_per_node: 1}\n")
    demand(versions[0])
    failing = tell(small, versions[0], Outcome.FAILED, error_class=ErrorClass.TRANSIENT, message="the store is away")
    Residency.objects.filter(pk=failing.pk).update(retry_at=timezone.now() + timedelta(minutes=1))
    load(small, versions[1], idle_s=1)
    assert demand(versions[2]).state is DemandState.QUEUED, "it is asked for still"
    backdate(failing, 60, "last_demand_at")
    serve_queues()
    assert Residency.objects.get(version=versions[0]).desired == "disk"
    assert Residency.objects.get(version=versions[2]).desired == "gpu"
