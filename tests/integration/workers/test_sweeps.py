"""The sweep repairs everything that can stall, and nothing that goes wrong with one thing keeps it from the others."""

import os
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from cachecontrol.services import reconcile
from cachecontrol.services.residencies import warm_version
from registry import dispatch
from registry.models import IdempotentAnswer, RetentionPolicy, Version
from registry.services.idempotency import KEPT_FOR
from registry.services.validation import expire_upload
from registry.states import VersionState
from registry.stores.errors import StoreUnavailable
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_actor, make_version
from workers import sweeps
from workers.jobs import validation
from workers.validation import Facts, Report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store", "signer")]
Messages = list[tuple[str, dict[str, Any]]]
FORGETTING = (
    "forget_old_answers",
    "forget_old_changes",
    "forget_old_deliveries",
    "forget_old_sessions",
    "tend_request_records",
)


def stalled(state: VersionState, *, seconds: float) -> Version:
    version = make_version(state=state)
    Version.objects.filter(pk=version.pk).update(state_changed_at=timezone.now() - timedelta(seconds=seconds))
    return version


def resent(sent: Messages) -> list[str]:
    return [arguments["version_id"] for task, arguments in sent if task == dispatch.VALIDATE_VERSION]


def test_a_stalled_validation_is_sent_again_once_per_deadline(sent: Messages, settings: Any) -> None:
    version = stalled(VersionState.VALIDATING, seconds=settings.VALIDATE_DEADLINE_S + 1)
    for _sweep in range(3):
        sweeps.sweep_all()
    assert resent(sent) == [str(version.pk)]
    long_ago = timezone.now() - timedelta(seconds=settings.VALIDATE_DEADLINE_S + 1)
    Version.objects.filter(pk=version.pk).update(validation_sent_at=long_ago)
    sweeps.sweep_all()
    assert resent(sent) == [str(version.pk)] * 2


def test_answers_to_requests_that_may_come_again_are_forgotten_after_a_day(sent: Messages) -> None:
    for key, age in (("old", KEPT_FOR + timedelta(seconds=1)), ("new", timedelta())):
        facts = {"owner": "o", "key": key, "fingerprint": "f", "sealed": b""}
        IdempotentAnswer.objects.create(**facts, created_at=timezone.now() - age)
    sweeps.sweep_all()
    assert list(IdempotentAnswer.objects.values_list("key", flat=True)) == ["new"]


@pytest.mark.parametrize("troubled", FORGETTING)
def test_rows_of_one_kind_that_can_not_be_forgotten_stop_neither_the_other_kinds_nor_what_comes_after(
    sent: Messages, settings: Any, monkeypatch: pytest.MonkeyPatch, troubled: str
) -> None:
    reached: list[str] = []

    def forget(name: str, **_facts: object) -> None:
        reached.append(name)
        if name == troubled:
            raise RuntimeError(name)

    for name in FORGETTING:
        monkeypatch.setattr(sweeps, name, partial(forget, name))
    version = stalled(VersionState.VALIDATING, seconds=settings.VALIDATE_DEADLINE_S + 1)
    sweeps.sweep_all()
    assert sorted(reached) == sorted(FORGETTING)
    assert resent(sent) == [str(version.pk)]


def test_retention_that_runs_by_itself_removes_what_is_old_once_a_day(sent: Messages) -> None:
    old = stalled(VersionState.APPROVED, seconds=9 * 86_400)
    policy = RetentionPolicy.objects.create(adapter=old.adapter, keep_days=7, automatic=True, applied_at=timezone.now())
    sweeps.sweep_all()
    old.refresh_from_db()
    assert old.purged_at is not None
    policy.refresh_from_db()
    first = policy.swept_at
    assert first is not None
    sweeps.sweep_all()
    policy.refresh_from_db()
    assert policy.swept_at == first


def test_validations_that_never_come_back_do_not_keep_others_from_being_sent_again(
    sent: Messages, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.services.validation.MAX_SWEPT", 1)
    made = [stalled(VersionState.VALIDATING, seconds=settings.VALIDATE_DEADLINE_S + age) for age in (9, 5)]
    sweeps.sweep_all()
    sweeps.sweep_all()
    assert resent(sent) == [str(version.pk) for version in made]


def test_one_upload_that_can_not_be_ended_does_not_keep_the_others_from_it(
    sent: Messages, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = stalled(VersionState.UPLOADING, seconds=settings.UPLOAD_TTL_S + 9)
    good = stalled(VersionState.UPLOADING, seconds=settings.UPLOAD_TTL_S + 5)

    def trip(*, actor: Any, version_id: UUID) -> None:
        if version_id == bad.pk:
            raise RuntimeError("no")
        expire_upload(actor=actor, version_id=version_id)

    monkeypatch.setattr(sweeps, "expire_upload", trip)
    sweeps.sweep_all()
    good.refresh_from_db()
    assert good.state == VersionState.REJECTED


def test_a_store_that_is_away_does_not_keep_nodes_from_being_looked_after(
    sent: Messages, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _number in range(2):
        stalled(VersionState.REJECTED, seconds=settings.UPLOAD_URL_TTL_S + 100)
    tried: list[UUID] = []
    swept: list[bool] = []

    def away(*, version_id: UUID) -> None:
        tried.append(version_id)
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(sweeps, "purge_version", away)
    monkeypatch.setattr(sweeps, "sweep_residencies", lambda: swept.append(True))
    sweeps.sweep_all()
    assert swept == [True]
    assert len(tried) == 1


def test_one_residency_that_fails_in_an_unforeseen_way_does_not_keep_the_others_from_being_reconciled(
    sent: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_version()
    nodes = [make_node(base_revision=version.base_revision) for _number in range(2)]
    for node in nodes:
        warm_version(actor=make_actor(), node=node, version=version)
    reached: list[str] = []

    def send(node: str, _task: str, _command: Any) -> None:
        reached.append(node)
        if node == nodes[0].name:
            raise OSError("the key is gone")

    monkeypatch.setattr(dispatch, "send_to_node", send)
    reconcile.sweep_residencies()
    assert reached == [node.name for node in nodes]


def test_folders_of_validations_that_were_killed_are_removed_by_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: Messages
) -> None:
    scratch = tmp_path / "scratch"
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    old, running = scratch / "lorekeeper-validate-old", scratch / "lorekeeper-validate-running"
    foreign = scratch / "somebody-elses"
    for folder in (old, running, foreign):
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(b"x")
    long_ago = time.time() - 3 * 3600
    os.utime(old, (long_ago, long_ago))
    os.utime(foreign, (long_ago, long_ago))
    version = make_version(state=VersionState.VALIDATING)
    monkeypatch.setattr(validation, "_check", lambda _version, _folder: Report(checks=(), facts=Facts(rank=4)))
    monkeypatch.setattr(validation, "fetch_version", lambda _version, _folder: None)
    validation.validate_version(version_id=version.pk)
    assert sorted(path.name for path in scratch.iterdir()) == [running.name, foreign.name]
