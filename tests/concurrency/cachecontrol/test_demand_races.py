import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connections, transaction

from cachecontrol import events
from cachecontrol.models import Eviction, LoadRequest, Node, Residency, TenantHeat, VersionHeat
from cachecontrol.selectors import residencies_with_relations
from cachecontrol.services.demand import demand_version
from cachecontrol.services.estimates import estimate_tiers
from cachecontrol.services.heat import count_requests
from cachecontrol.services.lifecycle import cordon_node
from cachecontrol.services.loads.turns import serve_queues
from cachecontrol.services.reconcile import reconcile_version, sweep_residencies
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import DemandState, Desired, Outcome
from deploy.embedded.postgres import GATEWAY, PostgresServer
from registry import dispatch
from registry.actors import system_actor
from registry.models import AuditRecord, Version
from registry.services.withdrawals import revoke_version
from registry.states import VersionState
from tests.concurrency.racing import errors_in, race
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, make_policy, report, tell
from tests.factories.registry import make_actor, make_adapter, make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer")]


@pytest.fixture(autouse=True)
def _no_node_listens(monkeypatch: pytest.MonkeyPatch, signer: Any, store: Any) -> None:
    monkeypatch.setattr(dispatch, "send_to_node", lambda _node, _task, _command: None)


@pytest.fixture
def version(db: None) -> Version:
    return make_version()


@pytest.fixture
def node(version: Version) -> Node:
    return make_node(base_revision=version.base_revision, name="n1")


def another_tenants(version: Version) -> Version:
    adapter = make_adapter(tenant=make_tenant(), base_model=version.adapter.base_model)
    return make_version(adapter=adapter, base_revision=version.base_revision)


def record(connection: psycopg.Connection[Any], version: Version) -> None:
    """One answered request, as a gateway writes it."""
    connection.execute(
        "INSERT INTO gateway_request (at, request_id, tenant, alias, version_id, node, tier, status, error_kind,"
        " queue_ms, load_ms, ttft_ms, total_ms, stream)"
        " VALUES (now(), 'r', 't', 'a', %s, 'n1', 'gpu', 200, '', 0, 0, 1, 1, false)",
        [version.pk],
    )


def results(found: list[int | Exception]) -> list[int]:
    assert errors_in(found) == []
    return [one for one in found if isinstance(one, int)]


def demander(version: Version) -> Callable[[], DemandState]:
    return lambda: demand_version(actor=gateway_actor(), version_id=version.pk).state


@pytest.mark.parametrize("attempt", range(3))
def test_many_gateways_asking_at_once_make_one_load(node: Node, version: Version, attempt: int) -> None:
    make_node(base_revision=version.base_revision)
    assert race(*[demander(version)] * 6) == [DemandState.LOADING] * 6
    residency = Residency.objects.get()
    assert residency.generation == 1
    assert AuditRecord.objects.filter(action="node:residency:want").count() == 1


def test_versions_asked_for_at_once_do_not_take_the_same_place() -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter) for _number in range(4)]
    make_node(base_revision=versions[0].base_revision, gpu_slots=1, cpu_slots=2)
    states = race(*(demander(version) for version in versions))
    assert sorted(str(state) for state in states) == ["loading", "loading", "queued", "queued"]
    assert Residency.objects.filter(desired=Desired.GPU.value).count() == 2


def test_a_tenants_ceiling_holds_however_many_of_its_versions_are_asked_for_at_once() -> None:
    """On two nodes of one pool, which share the quota and no row that both would lock."""
    adapter = make_adapter()
    files = {"adapter_model.safetensors": bytes(400_000)}
    versions = [make_version(adapter=adapter, files=files) for _number in range(6)]
    for _number in range(2):
        make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    quota = f"quotas: {{tenants: {{{adapter.tenant.name}: {{cpu_mb: {{ceiling: 1}}}}}}}}\n"
    admin = make_actor(make_person(is_platform_admin=True))
    make_policy(base_model=adapter.base_model, more=quota, approver=admin)
    states = race(*(demander(version) for version in versions))
    assert sorted(str(state) for state in states) == ["loading"] * 2 + ["queued"] * 4
    assert Residency.objects.filter(desired=Desired.GPU.value).count() == 2


def test_demands_of_many_tenants_with_full_nodes_make_room_one_for_one() -> None:
    """Victims and newcomers have different audit chains; nobody waits for anybody in a circle."""
    first = make_version()
    others = [another_tenants(first) for _number in range(7)]
    node = make_node(base_revision=first.base_revision, gpu_slots=1, cpu_slots=4)
    for version in (first, *others[:3]):
        demander(version)()
        backdate(tell(node, version, Outcome.LOADED), 3600, "state_changed_at", "last_demand_at")
    states = race(*(demander(version) for version in others[3:]))
    assert states == [DemandState.LOADING] * 4
    assert Residency.objects.filter(desired=Desired.GPU.value).count() == 4
    assert Eviction.objects.count() == 4
    assert Eviction.objects.values("version").distinct().count() == 4


def test_a_report_on_the_newcomer_and_a_demand_that_makes_room_for_it_wait_for_each_other_in_no_circle() -> None:
    """The report has the newcomer's row and wants the tenant's audit chain, which the victim's leaving writes to."""
    adapter = make_adapter()
    victim, newcomer = (make_version(adapter=adapter) for _number in range(2))
    node = make_node(base_revision=victim.base_revision, gpu_slots=1, cpu_slots=1)
    demander(newcomer)()
    backdate(tell(node, newcomer, Outcome.LOADED), 7200, "state_changed_at", "last_demand_at")
    demander(victim)()
    backdate(tell(node, victim, Outcome.LOADED), 3600, "state_changed_at", "last_demand_at")
    row_is_held = threading.Event()

    def report_newcomer() -> None:
        with transaction.atomic():
            held = residencies_with_relations().select_for_update(of=("self",)).get(version=newcomer)
            row_is_held.set()
            _wait_until_somebody_waits()
            events.residency_desired(actor=system_actor("cache"), residency=held, was=None)

    def demand_newcomer() -> None:
        assert row_is_held.wait(10)
        demander(newcomer)()

    assert errors_in(race(report_newcomer, demand_newcomer)) == []
    assert Residency.objects.get(version=newcomer).desired == Desired.GPU


def _wait_until_somebody_waits() -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with connections["default"].cursor() as cursor:
            # Within a transaction the view is read once, unless told otherwise.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(query)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    pytest.fail("nobody waits for a lock")


def test_a_node_that_is_cordoned_while_a_place_is_looked_for_gets_nothing(node: Node, version: Version) -> None:
    """The demand saw the node open and waits for its row, which the operator's change has."""
    is_closing = threading.Event()

    def cordon() -> None:
        with transaction.atomic():
            cordon_node(actor=make_actor(), node=node)
            is_closing.set()
            _wait_until_somebody_waits()

    def look() -> DemandState:
        assert is_closing.wait(10)
        return demander(version)()

    _cordoned, state = race(cordon, look)
    assert state is DemandState.QUEUED
    assert not Residency.objects.filter(desired=Desired.GPU.value).exists()


def test_two_workers_serving_one_queue_give_each_place_once() -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter) for _number in range(6)]
    node = make_node(base_revision=versions[0].base_revision, cpu_slots=8)
    admin = make_actor(make_person(is_platform_admin=True))
    make_policy(base_model=adapter.base_model, more="loading: {concurrent_loads_per_node: 2}\n", approver=admin)
    for version in versions:
        demander(version)()
    for version in versions[:2]:
        tell(node, version, Outcome.LOADED)
    assert errors_in(race(*[serve_queues] * 3)) == []
    assert Residency.objects.filter(desired=Desired.GPU.value).count() == 4
    placed = LoadRequest.objects.exclude(placed_at=None).order_by("pk").values_list("version", flat=True)
    assert list(placed) == [version.pk for version in versions[:4]]


def test_a_command_that_a_killed_worker_never_sent_is_sent_by_the_next_sweep(
    node: Node, version: Version, monkeypatch: pytest.MonkeyPatch, signer: Any, store: Any
) -> None:
    """The place was given and committed; the process died before the command was out."""
    commands: list[str] = []

    def die(*_args: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "send_to_node", die)
        with pytest.raises(SystemExit):
            demander(version)()
    assert LoadRequest.objects.get().state == "placed"
    residency = Residency.objects.get()
    assert residency.command_sent_at is not None
    monkeypatch.setattr(dispatch, "send_to_node", lambda _node, task, _command: commands.append(task))
    sweep_residencies()
    assert commands == [], "nobody knows yet that it was lost"
    backdate(residency, 3600, "command_sent_at", "state_changed_at")
    sweep_residencies()
    assert commands == ["node.warm"]
    tell(node, version, Outcome.LOADED)
    serve_queues()
    assert LoadRequest.objects.get().state == "done"


def counted_by_several(number: int) -> int:
    """What three workers count in all until they have that many.

    Transactions of others on this server put off what was written after they began.
    """
    counted, until = 0, time.monotonic() + 30
    while counted < number and time.monotonic() < until:
        counted += sum(results(race(*[count_requests] * 3)))
    return counted


def test_heat_counts_each_record_once_however_late_its_transaction_commits(
    node: Node, version: Version, postgres: PostgresServer
) -> None:
    """A gateway's batch got its numbers before another's and is committed after it; two workers count."""
    demander(version)()
    assert Residency.objects.get().last_used_at is None
    url = postgres.url(GATEWAY, database=str(connections["default"].settings_dict["NAME"]))
    with psycopg.connect(url) as early, psycopg.connect(url, autocommit=True) as late:
        record(early, version)
        record(late, version)
        assert sum(results(race(*[count_requests] * 2))) == 0, "the early one may still add to what is below"
        early.commit()
    assert counted_by_several(2) == 2
    assert count_requests() == 0
    heat = VersionHeat.objects.get()
    assert heat.hits == 2
    assert heat.rate == pytest.approx(2.0, rel=0.01)
    assert TenantHeat.objects.get().rate == pytest.approx(2.0, rel=0.01)
    assert heat.last_used_at is not None
    used_at = Residency.objects.get().last_used_at
    assert used_at is not None
    assert abs(used_at - heat.last_used_at) < timedelta(seconds=2)


def test_a_use_is_noted_past_whoever_holds_another_row_and_nobody_waits_in_a_circle(
    node: Node, version: Version, postgres: PostgresServer
) -> None:
    """Somebody has one residency's row and then wants the other's, in the order opposite to the counting's."""
    versions = [version, make_version(adapter=version.adapter)]
    for one in versions:
        demander(one)()
    first, second = Residency.objects.order_by("pk").values_list("pk", flat=True)
    url = postgres.url(GATEWAY, database=str(connections["default"].settings_dict["NAME"]))
    with psycopg.connect(url, autocommit=True) as gateway:
        for one in versions:
            record(gateway, one)
    is_held, is_counted = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Residency.objects.select_for_update().get(pk=second)
            is_held.set()
            assert is_counted.wait(60)
            Residency.objects.select_for_update().get(pk=first)

    def count() -> None:
        try:
            assert is_held.wait(10)
            with connections["default"].cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            counted, until = 0, time.monotonic() + 30
            while counted < len(versions) and time.monotonic() < until:
                counted += count_requests()
            assert counted == len(versions)
        finally:
            is_counted.set()

    assert errors_in(race(hold, count)) == []
    assert Residency.objects.get(pk=first).last_used_at is not None
    assert Residency.objects.get(pk=second).last_used_at is None


def test_tiers_are_estimated_past_a_row_that_somebody_holds(node: Node, version: Version) -> None:
    for one in (version, make_version(adapter=version.adapter)):
        demander(one)()
        tell(node, one, Outcome.LOADED)
    Residency.objects.update(tier="", tier_is_estimate=False)
    first, second = Residency.objects.order_by("pk").values_list("pk", flat=True)
    is_held, is_done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Residency.objects.select_for_update().get(pk=first)
            is_held.set()
            assert is_done.wait(60)

    def estimate() -> None:
        try:
            assert is_held.wait(10)
            with connections["default"].cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            assert estimate_tiers() == 1
        finally:
            is_done.set()

    assert errors_in(race(hold, estimate)) == []
    assert [Residency.objects.get(pk=key).tier for key in (first, second)] == ["", "gpu"]


@pytest.mark.parametrize("attempt", range(5))
def test_a_demand_and_a_revocation_take_turns(node: Node, version: Version, attempt: int) -> None:
    """Whoever comes second sees the first: in the end the reconciler leaves nothing wanted."""
    results = race(demander(version), lambda: revoke_version(actor=make_actor(), version=version, reason="poisoned"))
    assert errors_in(results) == []
    version.refresh_from_db()
    assert version.state == VersionState.REVOKED
    reconcile_version(version_id=version.pk)
    assert not Residency.objects.filter(desired=Desired.GPU.value).exists()


def test_operators_reports_outcomes_and_the_reconciler_at_once_do_not_trip_over_each_other(
    version: Version, node: Node, monkeypatch: pytest.MonkeyPatch, signer: Any, store: Any
) -> None:
    commands: list[dict[str, Any]] = []
    monkeypatch.setattr(dispatch, "send_to_node", lambda _node, _task, command: commands.append(command))
    warm_version(actor=make_actor(), node=node, version=version)
    acts: list[Callable[[], Any]] = [
        lambda: warm_version(actor=make_actor(), node=node, version=version),
        lambda: evict_version(actor=make_actor(), node=node, version=version),
        lambda: report(node, loaded=(version.engine_name,)),
        lambda: tell(node, version, Outcome.LOADED),
        lambda: reconcile_version(version_id=version.pk),
        lambda: reconcile_version(version_id=version.pk),
        demander(version),
    ]
    for _round in range(3):
        assert errors_in(race(*acts)) == []
    sent = [command["generation"] for command in commands]
    assert len(sent) == len(set(sent)), "a generation was sent twice"
    residency = Residency.objects.get()
    records = AuditRecord.objects.filter(object__id=str(residency.pk), object__kind="residency").order_by("seq")
    wishes = [(record.after or {})["generation"] for record in records if record.action != "node:residency:observe"]
    assert wishes == list(range(1, residency.generation + 1))


def test_two_reconcilers_send_one_command(
    version: Version, node: Node, monkeypatch: pytest.MonkeyPatch, signer: Any, store: Any
) -> None:
    commands: list[dict[str, Any]] = []
    monkeypatch.setattr(dispatch, "send_to_node", lambda _node, _task, command: commands.append(command))
    warm_version(actor=make_actor(), node=node, version=version)
    assert errors_in(race(*[lambda: reconcile_version(version_id=version.pk)] * 4)) == []
    assert len(commands) == 1
