"""What comes of an upload: what the checks find, once and again, the end of an abandoned one, and the purge."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import dispatch, events
from registry.actors import Actor
from registry.errors import WrongState
from registry.models import Revalidation, ValidationReport, Version
from registry.permissions import Action, require_in_tenant
from registry.reports import StoredReport
from registry.selectors import versions_with_relations
from registry.services.purges import remove_unneeded
from registry.states import VersionState
from registry.transitions import move_version

# How many of one kind a sweep looks at; the rest are left to the next one.
MAX_SWEPT: Final = 100
REVALIDATED_STATES: Final = frozenset({VersionState.CANDIDATE, VersionState.APPROVED, VersionState.YANKED})


@transaction.atomic
def record_validation(*, actor: Actor, version_id: UUID, report: StoredReport) -> Version:
    """Store a report and move the version to *candidate* or *rejected*. Quiet if the version was decided already."""
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    if version.state != VersionState.VALIDATING:
        return version
    _keep_report(version, report)
    to = VersionState.REJECTED if report.verdict == "reject" else VersionState.CANDIDATE
    move_version(
        version,
        was=VersionState.VALIDATING,
        to=to,
        message=report.summary,
        rank=report.rank,
        target_modules=list(report.target_modules),
        validation_digest=report.digest,
    )
    events.version_moved(
        actor=actor,
        version=version,
        action="validate",
        was=VersionState.VALIDATING,
        to=to,
        reason=report.summary,
        facts={"verdict": report.verdict, "report": report.digest},
    )
    if to is VersionState.REJECTED:
        dispatch.nudge(dispatch.PURGE_VERSION, version_id=str(version.pk))
    return version


@transaction.atomic
def request_revalidation(*, actor: Actor, version: Version, reason: str = "") -> Revalidation:
    """Have the checks run again, under the rules of today. Quiet when that is asked for already.

    A candidate then stands on the new report, so that approvals of the old one are void; one that fails is rejected. A
    version that was decided keeps the report it was decided on, and gains this one beside it.

    Raises:
        WrongState: the version was never validated, is refused or revoked, or its bytes are gone.

    """
    require_in_tenant(actor, Action.REVALIDATE_VERSION, version.adapter.tenant_id)
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    if not _can_be_revalidated(locked):
        raise WrongState(
            _("%(version)s is %(state)s; only a candidate, an approved or a yanked version can be validated again.")
            % {"version": locked, "state": locked.state}
        )
    known = Revalidation.objects.filter(version=locked, finished_at__isnull=True).first()
    if known is not None:
        return known
    asked = Revalidation.objects.create(version=locked, requested_by=actor.id, reason=reason, sent_at=timezone.now())
    events.revalidation_requested(actor=actor, version=locked, reason=reason)
    dispatch.nudge(dispatch.REVALIDATE_VERSION, revalidation_id=asked.pk)
    return asked


@transaction.atomic
def record_revalidation(*, actor: Actor, revalidation_id: int, report: StoredReport) -> Version:
    """Store the report of a re-run, and let a candidate stand on it. Quiet if the re-run has ended already.

    A report on a version that was withdrawn or purged meanwhile is dropped: its bytes may have gone while it was made.
    """
    asked, version = _lock_revalidation(revalidation_id)
    if asked.finished_at is not None or _drop_revalidation(actor, asked, version):
        return version
    asked.report = _keep_report(version, report)
    asked.finished_at = timezone.now()
    asked.save(update_fields=["report", "finished_at"])
    was = _stands_on(version)
    if version.state == VersionState.CANDIDATE:
        _stand_on_new_report(version, report)
    events.version_revalidated(
        actor=actor,
        version=version,
        verdict=report.verdict,
        report=report.digest,
        was=was,
        now=_stands_on(version),
    )
    return version


@transaction.atomic
def drop_vain_revalidation(*, actor: Actor, revalidation_id: int) -> bool:
    """End a re-run of a version that can't be validated again any more; whether nothing is left to do."""
    asked, version = _lock_revalidation(revalidation_id)
    return asked.finished_at is not None or _drop_revalidation(actor, asked, version)


@transaction.atomic
def expire_upload(*, actor: Actor, version_id: UUID) -> None:
    """End an upload that was never finalized. Quiet if it went on meanwhile."""
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    if version.state != VersionState.UPLOADING:
        return
    reason = _("The upload was never finalized.")
    move_version(version, was=VersionState.UPLOADING, to=VersionState.REJECTED, message=reason)
    events.version_moved(
        actor=actor,
        version=version,
        action="expire",
        was=VersionState.UPLOADING,
        to=VersionState.REJECTED,
        reason=reason,
    )
    dispatch.nudge(dispatch.PURGE_VERSION, version_id=str(version.pk))


@transaction.atomic
def purge_version(*, version_id: UUID) -> None:
    """Delete a rejected version's bytes from the store, except those that another version needs.

    Upload addresses outlive the rejection by up to their time to live, so the purge counts as done only after that.
    """
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    if version.state != VersionState.REJECTED or version.purged_at is not None:
        return
    remove_unneeded(version)
    if version.state_changed_at <= _urls_expired_before():
        Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())


@transaction.atomic
def send_validation_again(*, version_id: UUID) -> None:
    """Nudge the validation once more; the next time is a deadline from now, however often the sweep comes by."""
    waiting = Version.objects.filter(pk=version_id, state=VersionState.VALIDATING.value)
    if waiting.update(validation_sent_at=timezone.now()):
        dispatch.nudge(dispatch.VALIDATE_VERSION, version_id=str(version_id))


@transaction.atomic
def send_revalidation_again(*, revalidation_id: int) -> None:
    """As ``send_validation_again``, for a re-run."""
    if Revalidation.objects.filter(pk=revalidation_id, finished_at__isnull=True).update(sent_at=timezone.now()):
        dispatch.nudge(dispatch.REVALIDATE_VERSION, revalidation_id=revalidation_id)


def begin_evaluation(*, version_id: UUID) -> int:
    """Note that a worker is about to run the model; how many have been since one came back from it, this one included.

    It is committed before it begins: a model that takes its worker down would else be tried for ever.
    """
    Version.objects.filter(pk=version_id).update(evaluation_attempts=F("evaluation_attempts") + 1)
    return Version.objects.values_list("evaluation_attempts", flat=True).get(pk=version_id)


def end_evaluation(*, version_id: UUID) -> None:
    """The worker has come back, whatever it found."""
    Version.objects.filter(pk=version_id).update(evaluation_attempts=0)


def say_validation_runs(*, version_id: UUID) -> None:
    """A worker is at it: the deadline counts from now, as an evaluation takes longer than a lost message may."""
    waiting = Version.objects.filter(pk=version_id, state=VersionState.VALIDATING.value)
    waiting.update(validation_sent_at=timezone.now())


def say_revalidation_runs(*, revalidation_id: int) -> None:
    """As ``say_validation_runs``, for a re-run."""
    Revalidation.objects.filter(pk=revalidation_id, finished_at__isnull=True).update(sent_at=timezone.now())


def stalled_revalidations() -> list[int]:
    """Re-runs that a worker was asked for long ago and that have not come back, the longest forgotten first."""
    since = timezone.now() - timedelta(seconds=settings.VALIDATE_DEADLINE_S)
    stalled = Revalidation.objects.filter(finished_at__isnull=True, sent_at__lt=since).order_by("sent_at")
    return list(stalled.values_list("pk", flat=True)[:MAX_SWEPT])


def stalled_validations() -> list[UUID]:
    """Versions whose validation was nudged long ago and has not come back, the longest forgotten first."""
    since = timezone.now() - timedelta(seconds=settings.VALIDATE_DEADLINE_S)
    waiting = Version.objects.filter(state=VersionState.VALIDATING.value, state_changed_at__lt=since)
    sent_at = Coalesce("validation_sent_at", "state_changed_at")
    stalled = waiting.annotate(sent_at=sent_at).filter(sent_at__lt=since).order_by("sent_at")
    return list(stalled.values_list("pk", flat=True)[:MAX_SWEPT])


def abandoned_uploads() -> list[UUID]:
    """Uploads that were not finalized within their time to live."""
    since = timezone.now() - timedelta(seconds=settings.UPLOAD_TTL_S)
    return _ids(Q(state=VersionState.UPLOADING.value, state_changed_at__lt=since))


def unpurged_rejections() -> list[UUID]:
    """Rejected versions whose upload addresses have expired and whose bytes were not purged for good yet."""
    return _ids(
        Q(state=VersionState.REJECTED.value, purged_at__isnull=True, state_changed_at__lte=_urls_expired_before())
    )


def _keep_report(version: Version, report: StoredReport) -> ValidationReport:
    return ValidationReport.objects.create(
        version=version,
        verdict=report.verdict,
        policy_version=report.policy_version,
        report=report.document,
        digest=report.digest,
        reference=None if report.reference is None else report.reference.to_json(),
    )


def _can_be_revalidated(version: Version) -> bool:
    return version.state in REVALIDATED_STATES and version.purged_at is None


def _lock_revalidation(revalidation_id: int) -> tuple[Revalidation, Version]:
    asked = Revalidation.objects.get(pk=revalidation_id)
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=asked.version_id)
    asked.refresh_from_db()
    return asked, version


def _drop_revalidation(actor: Actor, asked: Revalidation, version: Version) -> bool:
    if _can_be_revalidated(version):
        return False
    asked.finished_at = timezone.now()
    asked.save(update_fields=["finished_at"])
    events.revalidation_dropped(actor=actor, version=version)
    return True


def _stands_on(version: Version) -> dict[str, str]:
    return {"state": version.state, "validation_digest": version.validation_digest}


def _stand_on_new_report(version: Version, report: StoredReport) -> None:
    """What was read from the tensors stays: the bytes are the same, and it is part of what the version is."""
    if report.verdict == "reject":
        facts = {"validation_digest": report.digest}
        move_version(version, was=VersionState.CANDIDATE, to=VersionState.REJECTED, message=report.summary, **facts)
        dispatch.nudge(dispatch.PURGE_VERSION, version_id=str(version.pk))
        return
    version.validation_digest, version.state_message = report.digest, report.summary
    version.save(update_fields=["validation_digest", "state_message"])


def _urls_expired_before() -> datetime:
    return timezone.now() - timedelta(seconds=settings.UPLOAD_URL_TTL_S + 60)


def _ids(condition: Q) -> list[UUID]:
    return list(Version.objects.filter(condition).order_by("state_changed_at").values_list("pk", flat=True)[:MAX_SWEPT])
