from collections.abc import Callable
from typing import Any

import pytest

from cachecontrol.models import Node, Residency
from cachecontrol.services.demand import demand_version
from cachecontrol.services.reconcile import reconcile_version
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import DemandState, Desired, Outcome
from registry import dispatch
from registry.models import AuditRecord, Version
from registry.services.withdrawals import revoke_version
from registry.states import VersionState
from tests.concurrency.racing import errors_in, race
from tests.factories.cachecontrol import gateway_actor, make_node, report, tell
from tests.factories.registry import make_actor, make_adapter, make_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer")]


@pytest.fixture
def version(db: None) -> Version:
    return make_version()


@pytest.fixture
def node(version: Version) -> Node:
    return make_node(base_revision=version.base_revision, name="n1")


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
    assert sorted(str(state) for state in states) == ["loading", "loading", "no_capacity", "no_capacity"]
    assert Residency.objects.filter(desired=Desired.GPU.value).count() == 2


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
