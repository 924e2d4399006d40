"""Warming, evicting and demanding: wishes, capacity, permissions."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from cachecontrol.errors import NoCapacity, NodeRefused, VersionNotServable
from cachecontrol.models import Eviction, LoadFailure, Node, Residency, VersionHeat
from cachecontrol.services.demand import demand_version, prewarm_version
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.services.wishes import demote, want_on_disk
from cachecontrol.states import DemandState, Desired, ErrorClass, NodeStatus, Outcome
from registry.actors import Actor
from registry.errors import NotFound, PermissionDenied
from registry.models import Adapter, AuditRecord, Version
from registry.states import Role, Scope, VersionState
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, make_policy, node_actor, tell
from tests.factories.registry import make_actor, make_adapter, make_member, make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def warm(node: Node, version: Version, actor: Actor | None = None) -> Residency:
    return warm_version(actor=actor or make_actor(), node=node, version=version)


def demand(version: Version) -> DemandState:
    return demand_version(actor=gateway_actor(), version_id=version.pk).state


def load(node: Node, version: Version, *, idle_s: float = 3600) -> Residency:
    """The version loaded on the node and not used for ``idle_s`` seconds."""
    residency = warm(node, version)
    tell(node, version, Outcome.LOADED)
    backdate(residency, idle_s, "state_changed_at", "created_at")
    return residency


def wishes(residency: Residency) -> list[str]:
    records = AuditRecord.objects.filter(object__kind="residency", object__id=str(residency.pk)).order_by("seq")
    return [record.action.rpartition(":")[2] for record in records]


def test_warming_twice_is_one_wish_with_one_record(node: Node, version: Version) -> None:
    operator = make_member(version.adapter.tenant, Role.OPERATOR)
    first, again = warm(node, version, operator), warm(node, version, operator)
    assert (first.pk, first.generation, first.desired, first.observed) == (again.pk, 1, "gpu", "absent")
    assert wishes(first) == ["want"]
    record = AuditRecord.objects.get(action="node:residency:want")
    assert (record.chain, record.actor["id"]) == (version.adapter.tenant.name, operator.id)


def test_an_operator_has_no_more_loads_in_a_minute_than_the_tenant(
    node: Node, adapter: Adapter, version: Version
) -> None:
    make_policy(
        base_model=version.base_revision.base_model,
        more="quotas: {default: {loads_per_minute: 2}}",
        approver=make_actor(make_person(is_platform_admin=True)),
    )
    operator = make_member(adapter.tenant, Role.OPERATOR)
    load(node, version)
    warm(node, make_version(adapter=adapter), operator)
    with pytest.raises(NoCapacity, match="has had its loads for this minute"):
        warm(node, make_version(adapter=adapter), operator)
    assert warm(node, version, operator).generation == 1


def test_the_reconciler_is_nudged_for_each_wish(
    node: Node, version: Version, sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        warm(node, version)
        evict_version(actor=make_actor(), node=node, version=version)
    assert sent == [("workers.tasks.reconcile_version", {"version_id": str(version.pk)})] * 2


@pytest.mark.parametrize(
    "state", [state for state in VersionState if state not in (VersionState.APPROVED, VersionState.YANKED)]
)
def test_what_may_not_be_served_is_not_warmed(node: Node, adapter: Adapter, state: VersionState) -> None:
    version = make_version(adapter=adapter, state=state)
    with pytest.raises(VersionNotServable, match=state.value):
        warm(node, version)
    assert demand(version) is DemandState.REFUSED
    assert not Residency.objects.exists()


def test_a_yanked_version_goes_on_being_served(node: Node, adapter: Adapter) -> None:
    version = make_version(adapter=adapter, state=VersionState.YANKED)
    assert demand(version) is DemandState.LOADING


def test_a_node_of_another_base_or_with_too_few_ranks_refuses(version: Version) -> None:
    with pytest.raises(NodeRefused):
        warm(make_node(), version)
    with pytest.raises(NodeRefused, match="rank 8"):
        warm(make_node(base_revision=version.base_revision, max_rank=4), version)
    assert demand(version) is DemandState.NO_NODE


def test_evicting_is_a_new_generation_and_quiet_the_second_time(node: Node, version: Version) -> None:
    load(node, version)
    first = evict_version(actor=make_actor(), node=node, version=version, reason="tidying")
    again = evict_version(actor=make_actor(), node=node, version=version)
    assert (first.generation, again.generation, again.desired) == (2, 2, "absent")
    assert wishes(first) == ["want", "observe", "release"]


def test_what_was_never_there_can_not_be_evicted(node: Node, version: Version) -> None:
    with pytest.raises(NotFound):
        evict_version(actor=make_actor(), node=node, version=version)


def test_a_demoted_version_keeps_its_files_and_an_evicted_one_does_not(node: Node, version: Version) -> None:
    load(node, version)
    first = evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
    again = evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
    assert (first.generation, again.generation, again.desired) == (2, 2, "disk")
    gone = evict_version(actor=make_actor(), node=node, version=version)
    assert (gone.generation, gone.desired) == (3, "absent")
    assert evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK).desired == "absent"
    assert wishes(first) == ["want", "observe", "keep", "release"]
    rows = Eviction.objects.order_by("pk").values_list("tier", "to_tier", "reason")
    assert list(rows) == [("gpu", "disk", "manual"), ("disk", "remote", "manual")]


def test_what_is_wanted_on_disk_is_wanted_once_and_the_engine_is_more_than_that(node: Node, version: Version) -> None:
    actor = make_actor()
    first = want_on_disk(actor=actor, node=node, version=version)
    assert want_on_disk(actor=actor, node=node, version=version).generation == 1
    assert (first.desired, warm(node, version).generation) == ("disk", 2)
    assert want_on_disk(actor=actor, node=node, version=version).desired == "gpu"
    assert wishes(first) == ["keep", "want"]


def test_a_fetch_that_failed_is_tried_anew_when_the_files_are_wanted_again(node: Node, version: Version) -> None:
    want_on_disk(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.REFUSED, message="not what was signed")
    assert want_on_disk(actor=make_actor(), node=node, version=version).generation == 2


def test_what_leaves_the_engine_is_not_hot_any_more(node: Node, version: Version) -> None:
    residency = load(node, version)
    Residency.objects.filter(pk=residency.pk).update(is_hot=True)
    demote(actor=make_actor(), residency=Residency.objects.get(pk=residency.pk))
    assert not Residency.objects.get(pk=residency.pk).is_hot


@pytest.mark.parametrize("mark", ["cordoned", "draining", "poisoned"])
def test_nothing_new_is_warmed_on_a_node_that_is_closed_and_what_it_has_is_quiet(
    node: Node, version: Version, mark: str
) -> None:
    held = load(node, version)
    Node.objects.filter(pk=node.pk).update(**{mark: True})
    assert warm(node, version).pk == held.pk
    with pytest.raises(NodeRefused, match="Nothing new"):
        warm(node, make_version(adapter=version.adapter))


def test_a_full_node_lets_the_version_worth_least_go_to_its_disk(adapter: Adapter) -> None:
    versions = [make_version(adapter=adapter) for _number in range(3)]
    node = make_node(base_revision=versions[0].base_revision, gpu_slots=1, cpu_slots=2)
    load(node, versions[0])
    load(node, versions[1])
    VersionHeat.objects.create(version=versions[0], rate=20.0, as_of=timezone.now(), hits=20)
    newcomer = warm(node, versions[2])
    assert newcomer.desired == "gpu"
    gone = Residency.objects.get(node=node, version=versions[1])
    assert gone.desired == "disk"
    assert AuditRecord.objects.get(action="node:residency:keep").reason == "to make room"


def test_loads_on_their_way_are_never_pushed_out(adapter: Adapter) -> None:
    loading, newcomer = (make_version(adapter=adapter) for _number in range(2))
    node = make_node(base_revision=newcomer.base_revision, gpu_slots=1, cpu_slots=1)
    warm(node, loading)
    with pytest.raises(NoCapacity):
        warm(node, newcomer)
    assert not Residency.objects.exclude(desired="gpu").exists()


def test_a_demand_makes_one_wish_however_many_ask(node: Node, version: Version) -> None:
    assert [demand(version) for _number in range(5)] == [DemandState.LOADING] * 5
    residency = Residency.objects.get()
    assert (residency.node, residency.generation) == (node, 1)
    assert wishes(residency) == ["want"]
    tell(node, version, Outcome.LOADED)
    assert demand(version) is DemandState.LOADED


def test_an_unknown_version_can_not_be_demanded(node: Node) -> None:
    with pytest.raises(NotFound):
        demand_version(actor=gateway_actor(), version_id=uuid4())


def test_a_failure_for_good_is_told_and_not_tried_again_by_asking(node: Node, version: Version) -> None:
    demand(version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="its weights don't fit")
    answer = demand_version(actor=gateway_actor(), version_id=version.pk)
    assert (answer.state, answer.message) == (DemandState.FAILED, "its weights don't fit")
    assert Residency.objects.get().generation == 1
    assert warm(node, version).generation == 2
    assert demand(version) is DemandState.LOADING


def test_after_a_pause_another_node_is_tried_where_one_failed_for_good(node: Node, version: Version) -> None:
    demand(version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT)
    other = make_node(base_revision=version.base_revision)
    assert demand(version) is DemandState.FAILED
    LoadFailure.objects.update(last_at=timezone.now() - timedelta(minutes=1))
    assert demand(version) is DemandState.LOADING
    assert Residency.objects.get(node=other).desired == "gpu"


def test_a_failure_worth_another_try_is_on_its_way(node: Node, version: Version) -> None:
    demand(version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.TRANSIENT)
    assert demand(version) is DemandState.LOADING
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.CAPACITY, message="the disk is full")
    assert demand(version) is DemandState.NO_CAPACITY


@pytest.mark.parametrize("status", [NodeStatus.LOST, NodeStatus.NEW])
def test_a_version_is_not_placed_where_nothing_can_be_loaded(version: Version, status: NodeStatus) -> None:
    make_node(base_revision=version.base_revision, status=status)
    assert demand(version) is DemandState.NO_NODE


def test_a_tainted_node_is_taken_only_without_another(version: Version) -> None:
    tainted = make_node(base_revision=version.base_revision, tainted=True)
    assert demand(version) is DemandState.LOADING
    assert Residency.objects.get().node == tainted
    tell(tainted, version, Outcome.LOADED)
    assert demand(version) is DemandState.LOADED
    sound = make_node(base_revision=version.base_revision)
    other = make_version(adapter=version.adapter)
    assert demand(other) is DemandState.LOADING
    assert Residency.objects.get(version=other).node == sound


def test_loaded_on_a_lost_node_is_not_loaded(node: Node, version: Version) -> None:
    load(node, version)
    Node.objects.filter(pk=node.pk).update(status="lost")
    assert demand(version) is DemandState.NO_NODE
    other = make_node(base_revision=version.base_revision)
    assert demand(version) is DemandState.LOADING
    assert Residency.objects.filter(node=other, desired="gpu").exists()


def test_while_the_engine_starts_again_a_demand_waits(node: Node, version: Version) -> None:
    load(node, version)
    Node.objects.filter(pk=node.pk).update(engine_healthy=False)
    assert demand(version) is DemandState.LOADING
    assert Residency.objects.get().generation == 1


def test_a_new_alias_target_is_wanted_in_the_name_of_who_moved_it(node: Node, version: Version) -> None:
    manager = make_member(version.adapter.tenant, Role.RELEASE_MANAGER)
    prewarm_version(actor=manager, version_id=version.pk)
    assert Residency.objects.get().desired == "gpu"
    assert AuditRecord.objects.get(action="node:residency:want").actor["id"] == manager.id


@pytest.mark.parametrize("role", list(Role))
def test_only_an_operator_of_the_versions_tenant_warms_and_evicts(node: Node, version: Version, role: Role) -> None:
    load(node, version)
    actor = make_member(version.adapter.tenant, role)
    if role is Role.OPERATOR:
        warm(node, version, actor)
        evict_version(actor=actor, node=node, version=version)
        return
    with pytest.raises(PermissionDenied):
        warm(node, version, actor)
    with pytest.raises(PermissionDenied):
        evict_version(actor=actor, node=node, version=version)


def test_another_tenants_operator_does_not_even_see_the_version(node: Node, version: Version) -> None:
    stranger = make_member(make_tenant(), Role.OPERATOR)
    with pytest.raises(NotFound):
        warm(node, version, stranger)
    with pytest.raises(NotFound):
        evict_version(actor=stranger, node=node, version=version)


def test_a_platform_admin_does_not_operate_a_tenants_versions(node: Node, version: Version) -> None:
    with pytest.raises(PermissionDenied):
        warm(node, version, make_actor(make_person(is_platform_admin=True)))


def test_only_a_gateways_scope_demands(node: Node, version: Version) -> None:
    everything_else = set(Scope) - {Scope.DEMAND}
    person = make_person(roles={version.adapter.tenant: list(Role)}, is_platform_admin=True)
    for actor in (make_actor(person, scopes=everything_else), node_actor(node)):
        with pytest.raises(PermissionDenied):
            demand_version(actor=actor, version_id=version.pk)


def test_versions_of_two_tenants_share_a_node(node: Node, version: Version) -> None:
    adapter = make_adapter(base_model=version.adapter.base_model)
    other = make_version(adapter=adapter, base_revision=version.base_revision)
    warm(node, version)
    warm(node, other)
    chains = AuditRecord.objects.filter(action="node:residency:want").values_list("chain", flat=True)
    assert set(chains) == {version.adapter.tenant.name, other.adapter.tenant.name}


def test_who_makes_room_for_another_tenants_version_is_not_named_to_that_tenant(node: Node, version: Version) -> None:
    victim = version
    load(node, victim)
    Node.objects.filter(pk=node.pk).update(gpu_slots=1, cpu_slots=1)
    newcomer = make_version(base_revision=victim.base_revision, adapter=make_adapter(tenant=make_tenant()))
    operator = make_member(newcomer.adapter.tenant, Role.OPERATOR)
    warm(node, newcomer, operator)
    record = AuditRecord.objects.get(action="node:residency:keep")
    assert record.chain == victim.adapter.tenant.name
    assert record.actor["kind"] == "system"
    assert operator.id not in record.payload


def test_who_makes_room_in_their_own_tenant_is_named(node: Node, version: Version) -> None:
    load(node, version)
    Node.objects.filter(pk=node.pk).update(gpu_slots=1, cpu_slots=1)
    newcomer = make_version(base_revision=version.base_revision, adapter=version.adapter)
    operator = make_member(version.adapter.tenant, Role.OPERATOR)
    warm(node, newcomer, operator)
    assert AuditRecord.objects.get(action="node:residency:keep").actor["id"] == operator.id
