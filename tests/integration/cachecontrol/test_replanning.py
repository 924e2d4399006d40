"""A pool planned at once after a change: by what is known of it already, or anew."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Node, Residency, VersionHeat
from cachecontrol.services.leases import give_back_lease, take_lease
from cachecontrol.services.lifecycle import cordon_node, drain_node, recycle_node, tend_node
from cachecontrol.services.nodes import NodeFacts, change_node
from cachecontrol.services.planning import facts, plan
from cachecontrol.services.planning.plan import plan_pools, replan_pool
from cachecontrol.services.policies import roll_back_policy
from cachecontrol.services.reconcile import reconcile_version
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import ErrorClass, Outcome
from registry import dispatch
from registry.actors import system_actor
from registry.models import Adapter, Version
from registry.states import VersionState
from registry.transitions import move_version
from tests.factories.cachecontrol import backdate, beat, make_node, make_policy, tell
from tests.factories.registry import make_actor, make_person, make_version
from workers.tasks import cache

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    plan._known.clear()
    yield
    plan._known.clear()


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    made = [make_version(adapter=adapter) for _number in range(3)]
    for version in made:
        VersionHeat.objects.create(version=version, rate=50.0, as_of=timezone.now(), hits=50)
    return made


@pytest.fixture
def nodes(versions: list[Version]) -> list[Node]:
    base = versions[0].base_revision
    return [make_node(base_revision=base, name=f"n{number}", gpu_slots=2, cpu_slots=4) for number in range(3)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often everything about a pool was read."""
    found: list[str] = []

    def read(digest: str) -> facts.Pool | None:
        found.append(digest)
        return facts.read_pool(digest)

    monkeypatch.setattr(plan, "read_pool", read)
    return found


def digest_of(version: Version) -> str:
    return version.base_revision.digest


def wanted(version: Version) -> dict[str, str]:
    return dict(Residency.objects.filter(version=version).values_list("node__name", "desired"))


def settle(versions: list[Version]) -> Node:
    """Everything is where the plan wants it; the node that has the first version."""
    plan_pools()
    for residency in Residency.objects.filter(desired="gpu").select_related("node", "version"):
        tell(residency.node, residency.version, Outcome.LOADED)
        backdate(residency, 3600, "state_changed_at", "created_at", "last_used_at")
    return Residency.objects.get(version=versions[0], desired="gpu").node


@pytest.mark.parametrize("how", ["lost", "poisoned", "draining"])
def test_what_a_node_had_is_loaded_elsewhere_at_once_without_reading_everything_again(
    versions: list[Version], nodes: list[Node], reads: list[str], how: str
) -> None:
    home = settle(versions)
    there = list(Residency.objects.filter(node=home, desired="gpu").values_list("version", flat=True))
    columns: dict[str, dict[str, Any]] = {"lost": {"status": "lost"}}
    column = columns.get(how, {how: True})
    Node.objects.filter(pk=home.pk).update(**column)
    reads.clear()
    assert replan_pool(digest_of(versions[0])) >= len(there)
    assert reads == []
    for version_id in there:
        assert Residency.objects.filter(version=version_id, desired="gpu").exclude(node=home).count() == 1
    before = sorted(Residency.objects.values_list("node", "version", "desired"))
    plan_pools()
    assert sorted(Residency.objects.values_list("node", "version", "desired")) == before, "the next plan agrees"


def test_a_process_that_has_not_planned_the_pool_reads_all_of_it(
    versions: list[Version], nodes: list[Node], reads: list[str]
) -> None:
    assert replan_pool(digest_of(versions[0])) > 0
    assert reads == [digest_of(versions[0])]


@pytest.mark.parametrize("what", ["old", "policy", "stranger", "many"])
def test_what_is_known_of_a_pool_is_not_used_where_too_much_is_another(
    versions: list[Version], nodes: list[Node], reads: list[str], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(versions)
    reads.clear()
    if what == "old":
        monkeypatch.setattr(plan, "_FRESH", timedelta(0))
    elif what == "policy":
        make_policy(
            base_model=versions[0].base_revision.base_model,
            more="replicas: {max: 2}\n",
            approver=make_actor(make_person(is_platform_admin=True)),
        )
    elif what == "stranger":
        warm_version(actor=make_actor(), node=nodes[0], version=make_version(adapter=versions[0].adapter))
    else:
        monkeypatch.setattr(plan, "_FEW", 1)
        Node.objects.exclude(pk=nodes[0].pk).update(cordoned=True)
    replan_pool(digest_of(versions[0]))
    assert reads == [digest_of(versions[0])]


def test_a_place_that_a_revoked_version_leaves_goes_to_one_that_waits(
    versions: list[Version], reads: list[str]
) -> None:
    make_node(base_revision=versions[0].base_revision, name="small", gpu_slots=1, cpu_slots=2)
    plan_pools()
    waiting = next(version for version in versions if "gpu" not in wanted(version).values())
    gone = next(version for version in versions if "gpu" in wanted(version).values())
    move_version(gone, was=VersionState.APPROVED, to=VersionState.REVOKED)
    reconcile_version(version_id=gone.pk)
    reads.clear()
    replan_pool(digest_of(gone))
    assert reads == []
    assert wanted(waiting) == {"small": "gpu"}


def test_what_an_operator_has_just_taken_from_a_node_is_not_brought_back_there(
    versions: list[Version], nodes: list[Node], reads: list[str]
) -> None:
    home = settle(versions)
    evict_version(actor=make_actor(), node=home, version=versions[0])
    tell(home, versions[0], Outcome.EVICTED)
    Node.objects.exclude(pk=home.pk).update(cordoned=True)
    reads.clear()
    replan_pool(digest_of(versions[0]))
    assert reads == []
    assert wanted(versions[0]) == {home.name: "absent"}


def test_while_somebody_else_plans_the_pool_it_is_tried_again_shortly(
    versions: list[Version], nodes: list[Node], sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    """Whoever does may have read the pool before it changed."""
    digest = digest_of(versions[0])
    until = take_lease(f"plan {digest}", lasts=timedelta(minutes=1))
    assert until
    with django_capture_on_commit_callbacks(execute=True):
        assert replan_pool(digest) == 0
    assert (dispatch.REPLAN_POOL, {"pool": digest}) in sent
    give_back_lease(f"plan {digest}", until=until)
    cache.replan(digest)
    assert "gpu" in wanted(versions[0]).values()


def _cordon(node: Node, _version: Version) -> None:
    cordon_node(actor=make_actor(), node=node)


def _drain(node: Node, _version: Version) -> None:
    drain_node(actor=make_actor(), node=node)


def _lose(node: Node, _version: Version) -> None:
    Node.objects.filter(pk=node.pk).update(last_seen_at=timezone.now() - timedelta(hours=1))
    node.refresh_from_db()
    tend_node(actor=system_actor("reconciler"), node=node)


def _recycle(node: Node, _version: Version) -> None:
    Node.objects.filter(pk=node.pk).update(restartable=True)
    recycle_node(actor=make_actor(), node=node)


def _fall_ill(node: Node, _version: Version) -> None:
    beat(node, engine_healthy=False)


def _taint(node: Node, version: Version) -> None:
    warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADING)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="shape mismatch")


def _resize(node: Node, version: Version) -> None:
    known: dict[str, Any] = {"engine_kind": "vllm", "engine_url": node.engine_url, "base_revision": node.base_revision}
    sizes: dict[str, Any] = {"gpu_slots": 2, "cpu_slots": 8, "max_rank": 64, "disk_bytes": 10**9}
    change_node(actor=make_actor(), node=node, facts=NodeFacts(**known, **sizes))


def _put_policy_in_force(node: Node, _version: Version) -> None:
    admin = make_actor(make_person(is_platform_admin=True))
    make_policy(base_model=node.base_revision.base_model, more="replicas: {max: 2}\n", approver=admin)


def _take_policy_back(node: Node, version: Version) -> None:
    _put_policy_in_force(node, version)
    roll_back_policy(actor=make_actor(), base_model=node.base_revision.base_model, to=0)


def _revoke(node: Node, version: Version) -> None:
    warm_version(actor=make_actor(), node=node, version=version)
    move_version(version, was=VersionState.APPROVED, to=VersionState.REVOKED)
    reconcile_version(version_id=version.pk)


@pytest.mark.parametrize(
    "change",
    [_cordon, _drain, _lose, _recycle, _fall_ill, _taint, _resize, _put_policy_in_force, _take_policy_back, _revoke],
)
def test_what_changes_a_pool_has_it_planned_soon_and_once(
    node: Node, version: Version, sent: list[Any], change: Any, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        change(node, version)
    asked = [arguments for task, arguments in sent if task == dispatch.REPLAN_POOL]
    assert asked == [{"pool": version.base_revision.digest}]


def test_a_heartbeat_that_says_nothing_new_has_nothing_planned(
    node: Node, sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        beat(node)
    assert dispatch.REPLAN_POOL not in {task for task, _arguments in sent}
