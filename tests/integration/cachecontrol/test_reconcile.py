"""From a wish to commands on the node's queue, and from there to what was wished."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.services import commands, reconcile
from cachecontrol.services.reconcile import sweep_residencies
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.services.wishes import want_on_disk
from cachecontrol.states import Desired, ErrorClass, Outcome
from registry.models import AuditRecord, Version
from registry.naming import object_key
from registry.services.withdrawals import revoke_version, yank_version
from registry.signing.grants import check_grant
from registry.signing.keys import TrustedKeys
from tests.factories.cachecontrol import backdate, make_node, report, tell
from tests.factories.registry import make_actor, make_base_revision, make_version
from workers.node.commands import parse_evict, parse_fetch, parse_warm
from workers.tasks.reconcile import reconcile_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def residency(node: Node, version: Version) -> Residency:
    return warm_version(actor=make_actor(), node=node, version=version)


def run(version: Version) -> None:
    reconcile_version(version_id=str(version.pk))


def facts_of(residency: Residency) -> tuple[str, str, int, int]:
    residency.refresh_from_db()
    return residency.desired, residency.observed, residency.generation, residency.acted_generation


def test_a_wish_becomes_a_command_that_the_agent_understands(
    node: Node, version: Version, residency: Residency, queues: Any, signer: Any, store: Any
) -> None:
    run(version)
    [(queue, task, raw)] = queues.sent
    assert (queue, task) == ("n1", "node.warm")
    command = parse_warm(raw)
    assert (command.generation, command.engine_name) == (1, version.engine_name)
    assert (command.bundle, command.attestation) == (version.signature.bundle, version.signature.attestation)
    files = {file.path: file for file in command.files}
    assert set(files) == {"adapter_config.json", "adapter_model.safetensors"}
    for file in version.files.select_related("artifact"):
        sent = files[file.path]
        assert (sent.sha256, sent.size) == (file.artifact.sha256, file.artifact.size)
        assert sent.url.startswith("http://testserver/store/")
        assert object_key(tenant=version.adapter.tenant.name, sha256=sent.sha256)
    grant = check_grant(command.grant, TrustedKeys.from_pem(signer.public_pem()), node="n1")
    assert (grant.engine_name, grant.root_digest, grant.generation) == (version.engine_name, version.root_digest, 1)
    assert grant.base_revision == version.base_revision.digest
    assert grant.tenant == version.adapter.tenant.name


def test_a_command_is_sent_once_and_again_only_after_its_deadline(
    version: Version, residency: Residency, queues: Any, settings: Any
) -> None:
    run(version)
    sweep_residencies()
    sweep_residencies()
    assert queues.tasks == ["node.warm"]
    backdate(residency, settings.COMMAND_DEADLINE_S + 1, "command_sent_at", "state_changed_at")
    sweep_residencies()
    sweep_residencies()
    assert [command["generation"] for _node, _task, command in queues.sent] == [1, 1]


def test_a_broker_that_is_away_leaves_it_to_the_sweep(version: Version, residency: Residency, queues: Any) -> None:
    queues.is_away = True
    run(version)
    residency.refresh_from_db()
    assert (queues.sent, residency.command_sent_at) == ([], None)
    queues.is_away = False
    backdate(residency, 2, "retry_at")
    sweep_residencies()
    assert queues.tasks == ["node.warm"]


def test_a_store_that_is_away_leaves_it_to_the_sweep(
    version: Version, residency: Residency, queues: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from registry.stores.errors import StoreUnavailable

    def away() -> None:
        raise StoreUnavailable("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(commands, "artifact_store", away)
        run(version)
    residency.refresh_from_db()
    assert (queues.sent, residency.command_sent_at) == ([], None)


def test_nothing_is_sent_to_a_node_that_has_not_reported(version: Version, queues: Any) -> None:
    from tests.factories.cachecontrol import register

    node = register(base_revision=version.base_revision, name="n2").node
    warm_version(actor=make_actor(), node=node, version=version)
    run(version)
    assert queues.sent == []
    report(node)
    sweep_residencies()
    assert queues.tasks == ["node.warm"]


def test_evicting_stops_routing_first_then_drains_then_unloads(
    node: Node, version: Version, residency: Residency, queues: Any, settings: Any
) -> None:
    tell(node, version, Outcome.LOADED)
    evict_version(actor=make_actor(), node=node, version=version)
    run(version)
    assert facts_of(residency) == ("absent", "draining", 2, 1)
    assert queues.sent == []
    backdate(residency, settings.DRAIN_S + 1, "drain_until")
    sweep_residencies()
    [(_queue, task, raw)] = queues.sent
    assert task == "node.evict"
    assert parse_evict(raw).grace_s == settings.EVICT_GRACE_S
    assert parse_evict(raw).generation == 2
    tell(node, version, Outcome.EVICTED)
    assert facts_of(residency) == ("absent", "absent", 2, 2)
    sweep_residencies()
    assert len(queues.sent) == 1


def test_demoting_stops_routing_unloads_keeps_the_files_and_promoting_loads_them_again(
    node: Node, version: Version, residency: Residency, queues: Any, settings: Any
) -> None:
    tell(node, version, Outcome.LOADED)
    evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
    run(version)
    assert facts_of(residency) == ("disk", "draining", 2, 1)
    residency.refresh_from_db()
    assert residency.drain_until is not None
    assert residency.drain_until - timezone.now() < timedelta(seconds=0.5)
    backdate(residency, 1, "drain_until")
    sweep_residencies()
    [(_queue, task, raw)] = queues.sent
    assert (task, parse_evict(raw).to, parse_evict(raw).drain_s) == ("node.evict", "disk", settings.DRAIN_S)
    tell(node, version, Outcome.ON_DISK)
    sweep_residencies()
    assert facts_of(residency) == ("disk", "on_disk", 2, 2)
    warm_version(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    assert queues.tasks == ["node.evict", "node.warm"]


def test_files_come_to_a_disk_while_the_engine_is_away(node: Node, version: Version, queues: Any) -> None:
    Node.objects.filter(pk=node.pk).update(engine_healthy=False)
    residency = want_on_disk(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    [(_queue, task, raw)] = queues.sent
    assert (task, parse_fetch(raw).generation) == ("node.fetch", 1)
    tell(node, version, Outcome.ON_DISK)
    sweep_residencies()
    assert (facts_of(residency), len(queues.sent)) == (("disk", "on_disk", 1, 1), 1)


def test_nothing_is_loaded_into_an_engine_that_is_being_restarted_and_all_of_it_afterwards(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    Node.objects.filter(pk=node.pk).update(
        recycling_since=timezone.now(), recycling_boot_id="boot-1", restartable=True, tainted=True
    )
    sweep_residencies()
    assert queues.sent == []
    report(node, boot_id="boot-2", restartable=True)
    sweep_residencies()
    assert queues.tasks == ["node.warm"]


def test_what_is_withdrawn_leaves_with_its_reason_on_record(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    tell(node, version, Outcome.LOADED)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    run(version)
    row = Eviction.objects.get()
    assert (row.tier, row.to_tier, row.reason) == ("gpu", "remote", "withdrawn")


def test_a_restarted_engine_is_filled_again(node: Node, version: Version, residency: Residency, queues: Any) -> None:
    run(version)
    tell(node, version, Outcome.LOADED)
    backdate(residency, 60, "state_changed_at")
    report(node, boot_id="boot-2", engine_healthy=False)
    sweep_residencies()
    assert queues.tasks == ["node.warm"]
    report(node, boot_id="boot-2")
    sweep_residencies()
    assert [command["generation"] for _node, _task, command in queues.sent] == [1, 2]
    tell(node, version, Outcome.LOADED)
    assert facts_of(residency) == ("gpu", "loaded", 2, 2)


def test_a_transient_failure_is_tried_again_when_its_time_has_come(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    run(version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.TRANSIENT)
    sweep_residencies()
    assert len(queues.sent) == 1
    backdate(residency, 5, "retry_at")
    sweep_residencies()
    assert [command["generation"] for _node, _task, command in queues.sent] == [1, 2]


def test_a_permanent_failure_is_not_tried_again_until_wanted_again(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    run(version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT)
    sweep_residencies()
    assert len(queues.sent) == 1
    warm_version(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    assert [command["generation"] for _node, _task, command in queues.sent] == [1, 2]


def test_a_revoked_version_leaves_every_node_and_is_forgotten(
    node: Node, version: Version, residency: Residency, queues: Any, settings: Any
) -> None:
    tell(node, version, Outcome.LOADED)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    run(version)
    assert facts_of(residency) == ("absent", "draining", 2, 1)
    backdate(residency, settings.DRAIN_S + 1, "drain_until")
    sweep_residencies()
    assert queues.tasks == ["node.evict"]
    tell(node, version, Outcome.EVICTED)
    sweep_residencies()
    assert not Residency.objects.exists()
    assert AuditRecord.objects.filter(action="node:residency:forget").count() == 1


def test_the_sweep_finds_a_revoked_version_without_a_nudge(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    tell(node, version, Outcome.LOADED)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    sweep_residencies()
    assert facts_of(residency)[:2] == ("absent", "draining")


def test_a_yanked_version_stays(node: Node, version: Version, residency: Residency, queues: Any) -> None:
    tell(node, version, Outcome.LOADED)
    yank_version(actor=make_actor(), version=version, reason="superseded")
    sweep_residencies()
    assert facts_of(residency) == ("gpu", "loaded", 1, 1)


def test_what_does_not_fit_a_changed_node_leaves_it(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    tell(node, version, Outcome.LOADED)
    Node.objects.filter(pk=node.pk).update(base_revision=make_base_revision())
    sweep_residencies()
    assert facts_of(residency)[:2] == ("absent", "draining")


def test_the_sweep_marks_silent_nodes_lost_and_sends_them_nothing(
    node: Node, version: Version, residency: Residency, queues: Any, settings: Any
) -> None:
    Node.objects.filter(pk=node.pk).update(last_seen_at=timezone.now() - timedelta(seconds=settings.NODE_TIMEOUT_S + 1))
    sweep_residencies()
    node.refresh_from_db()
    assert (node.status, queues.sent) == ("lost", [])


def test_trouble_with_one_residency_does_not_stop_the_others(
    node: Node, version: Version, residency: Residency, queues: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    other = make_version(adapter=version.adapter)
    warm_version(actor=make_actor(), node=node, version=other)
    good = commands.warm_command

    def bad_for_one(asked: Residency) -> dict[str, Any]:
        if asked.version_id == version.pk:
            from registry.signing.errors import KeyFileError

            raise KeyFileError("the signing key can't be read")
        return good(asked)

    monkeypatch.setattr(reconcile, "warm_command", bad_for_one)
    sweep_residencies()
    assert [command["engine_name"] for _node, _task, command in queues.sent] == [other.engine_name]
    assert "left to the next sweep" in caplog.text


def test_every_change_of_a_life_has_exactly_one_record(
    node: Node, version: Version, residency: Residency, queues: Any, settings: Any
) -> None:
    run(version)
    tell(node, version, Outcome.LOADING)
    tell(node, version, Outcome.LOADED)
    evict_version(actor=make_actor(), node=node, version=version)
    run(version)
    backdate(residency, settings.DRAIN_S + 1, "drain_until")
    run(version)
    tell(node, version, Outcome.EVICTED)
    records = AuditRecord.objects.filter(object__id=str(residency.pk), object__kind="residency").order_by("seq")
    assert [(record.action.rpartition(":")[2], record.after) for record in records] == [
        ("want", {"desired": "gpu", "generation": 1}),
        ("observe", {"observed": "loading", "generation": 1}),
        ("observe", {"observed": "loaded", "generation": 1}),
        ("release", {"desired": "absent", "generation": 2}),
        ("observe", {"observed": "draining", "generation": 2}),
        ("observe", {"observed": "absent", "generation": 2}),
    ]
    assert {record.chain for record in records} == {version.adapter.tenant.name}


def test_two_nodes_are_kept_in_step_each_for_itself(
    node: Node, version: Version, residency: Residency, queues: Any
) -> None:
    other = make_node(base_revision=version.base_revision, name="n2")
    warm_version(actor=make_actor(), node=other, version=version)
    run(version)
    assert sorted(queue for queue, _task, _command in queues.sent) == ["n1", "n2"]
