"""A model that takes its worker down, or never ends, does not hold a version for ever; no torch is needed for that."""

import sys
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from registry import dispatch
from registry.models import AuditRecord, Revalidation, Version
from registry.ports import PORTS
from registry.reports import StoredReport
from registry.services.evaluations import keep_evaluation_set
from registry.services.validation import (
    record_revalidation,
    request_revalidation,
    say_revalidation_runs,
    say_validation_runs,
)
from registry.states import Role, VersionState
from registry.stores.errors import StoreUnavailable
from tests.factories.registry import make_actor, make_member, make_version
from workers import sweeps
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.ports import Voice
from workers.jobs import evaluation
from workers.jobs.evaluation import MAX_ATTEMPTS, evaluate_version
from workers.jobs.validation import revalidate_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store", "signer")]
Messages = list[tuple[str, dict[str, Any]]]


def evaluated(version: Version, tmp_path: Any) -> str:
    found = evaluate_version(version, tmp_path, scratch=tmp_path / "other")
    return found.checks[0].message


def test_a_model_that_fails_again_and_again_is_given_up_and_the_report_says_so(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_args: object) -> None:
        raise MemoryError

    version = make_version(state=VersionState.VALIDATING)
    monkeypatch.setattr(evaluation, "_run", die)
    for _attempt in range(MAX_ATTEMPTS):
        with pytest.raises(MemoryError):
            evaluated(version, tmp_path)
    assert "running it has failed 3 times" in evaluated(version, tmp_path)
    version.refresh_from_db()
    assert version.evaluation_attempts == 0


def test_a_base_that_is_nowhere_here_is_no_failed_attempt(tmp_path: Any, settings: Any) -> None:
    version = make_version(state=VersionState.VALIDATING)
    settings.BASE_MODEL_FOLDERS = tmp_path
    for _time in range(MAX_ATTEMPTS + 1):
        assert "has no folder" in evaluated(version, tmp_path)


def test_a_worker_without_torch_says_what_to_install(
    tmp_path: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_version(state=VersionState.VALIDATING)
    settings.BASE_MODEL_FOLDERS = tmp_path
    (tmp_path / version.base_revision.base_model.name / version.base_revision.label).mkdir(parents=True)
    monkeypatch.setitem(sys.modules, "workers.evaluation.model", None)
    evaluation._shelf.cache_clear()
    assert "install lorekeeper[worker]" in evaluated(version, tmp_path)


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> Version:
    """A version with an evaluation set, and with another one that is served now."""
    made = make_version(state=VersionState.VALIDATING)
    tenant = made.adapter.tenant
    served = make_version(adapter=made.adapter, base_revision=made.base_revision, state=VersionState.APPROVED)
    reviewer = make_member(tenant, Role.REVIEWER)
    keep_evaluation_set(actor=reviewer, tenant=tenant, name="smoke", examples=[{"prompt": "?"}])
    monkeypatch.setattr(PORTS, "alias_targets", lambda *, adapter_id: {f"{made.adapter.name}.default": served.pk})
    return made


def test_a_store_that_is_away_is_no_failed_attempt(
    version: Version, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_args: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(evaluation, "fetch_version", away)
    for _time in range(MAX_ATTEMPTS + 1):
        with pytest.raises(StoreUnavailable):
            evaluated(version, tmp_path)
    version.refresh_from_db()
    assert version.evaluation_attempts == 0


def test_a_disk_without_room_for_the_served_version_does_not_keep_the_new_one_from_being_run(
    version: Version, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(evaluation, "fetch_version", full)
    assert "has no base models" in evaluated(version, tmp_path)


def test_a_served_version_that_can_not_be_run_does_not_keep_the_new_one_from_it(
    version: Version, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[set[Voice]] = []

    def run(_version: Version, folders: dict[Voice, Any], _brief: object) -> None:
        ran.append(set(folders))
        raise NotPossibleError("peft can't load it")

    monkeypatch.setattr(evaluation, "fetch_version", lambda *_args: True)
    monkeypatch.setattr(evaluation, "_run", run)
    assert "peft can't load it" in evaluated(version, tmp_path)
    assert ran == [{Voice.CANDIDATE, Voice.CURRENT}, {Voice.CANDIDATE}]


def test_a_worker_that_says_it_is_at_it_is_not_sent_the_same_version_again(sent: Messages, settings: Any) -> None:
    version = make_version(state=VersionState.VALIDATING)
    long_ago = timezone.now() - timedelta(seconds=settings.VALIDATE_DEADLINE_S + 1)
    Version.objects.filter(pk=version.pk).update(state_changed_at=long_ago, validation_sent_at=long_ago)
    say_validation_runs(version_id=version.pk)
    sweeps.sweep_all()
    assert sent == []


def test_a_rerun_that_never_comes_back_is_sent_again_once_per_deadline(sent: Messages, settings: Any) -> None:
    asked = request_revalidation(actor=make_actor(), version=make_version(state=VersionState.CANDIDATE))
    message = (dispatch.REVALIDATE_VERSION, {"revalidation_id": asked.pk})
    long_ago = timezone.now() - timedelta(seconds=settings.VALIDATE_DEADLINE_S + 1)
    sweeps.sweep_all()
    assert sent == [message]
    Revalidation.objects.filter(pk=asked.pk).update(sent_at=long_ago)
    sweeps.sweep_all()
    sweeps.sweep_all()
    assert sent == [message] * 2
    Revalidation.objects.filter(pk=asked.pk).update(sent_at=long_ago)
    say_revalidation_runs(revalidation_id=asked.pk)
    sweeps.sweep_all()
    assert sent == [message] * 2


def test_a_version_that_was_approved_while_it_was_checked_again_keeps_its_report(sent: Messages) -> None:
    version = make_version(state=VersionState.APPROVED)
    before = version.validation_digest
    asked = request_revalidation(actor=make_actor(), version=version)
    report = StoredReport("reject", "3", "It is rude.", {}, "a" * 64, 8, ("q_proj",))
    for _redelivered in range(2):
        record_revalidation(actor=make_actor(), revalidation_id=asked.pk, report=report)
    version.refresh_from_db()
    assert (version.state, version.validation_digest) == (VersionState.APPROVED, before)
    assert version.reports.count() == 1


@pytest.mark.parametrize("state", [VersionState.CANDIDATE, VersionState.APPROVED])
def test_a_version_whose_bytes_were_removed_meanwhile_is_not_reported_on(
    sent: Messages, tmp_path: Any, state: VersionState
) -> None:
    version = make_version(state=state)
    asked = request_revalidation(actor=make_actor(), version=version)
    Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())
    revalidate_version(revalidation_id=asked.pk)
    report = StoredReport("reject", "3", "Files are missing.", {}, "a" * 64, 8, ("q_proj",))
    record_revalidation(actor=make_actor(), revalidation_id=asked.pk, report=report)
    version.refresh_from_db()
    asked.refresh_from_db()
    assert (version.state, version.reports.count()) == (state, 0)
    assert (asked.finished_at is not None, asked.report) == (True, None)
    last = AuditRecord.objects.order_by("-pk").first()
    assert last is not None
    assert last.action == "adapter:version:drop_revalidation"


def test_a_version_that_lost_its_bytes_while_it_was_checked_is_not_rejected_for_that(sent: Messages) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    asked = request_revalidation(actor=make_actor(), version=version)
    Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())
    report = StoredReport("reject", "3", "Files are missing.", {}, "a" * 64, 8, ("q_proj",))
    record_revalidation(actor=make_actor(), revalidation_id=asked.pk, report=report)
    version.refresh_from_db()
    assert (version.state, version.reports.count()) == (VersionState.CANDIDATE, 0)
