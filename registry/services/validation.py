"""What comes of an upload: the result of the checks, the end of an abandoned one, and the purge of refused bytes."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import dispatch, events
from registry.actors import Actor
from registry.models import Artifact, ValidationReport, Version
from registry.naming import object_key
from registry.reports import StoredReport
from registry.selectors import versions_with_relations
from registry.services.stores import artifact_store
from registry.states import VersionState
from registry.transitions import move_version

# How many of one kind a sweep looks at; the rest are left to the next one.
MAX_SWEPT: Final = 100


@transaction.atomic
def record_validation(*, actor: Actor, version_id: UUID, report: StoredReport) -> Version:
    """Store a report and move the version to *candidate* or *rejected*. Quiet if the version was decided already."""
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    if version.state != VersionState.VALIDATING:
        return version
    ValidationReport.objects.create(
        version=version,
        verdict=report.verdict,
        policy_version=report.policy_version,
        report=report.document,
        digest=report.digest,
    )
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
    tenant = version.adapter.tenant.name
    for artifact in (
        Artifact.objects.select_for_update(of=("self",), no_key=True).filter(files__version=version).order_by("sha256")
    ):
        if artifact.files.exclude(version__state=VersionState.REJECTED.value).exists():
            continue
        artifact_store().delete(object_key(tenant=tenant, sha256=artifact.sha256))
        Artifact.objects.filter(pk=artifact.pk).update(stored_at=None)
    if version.state_changed_at <= _urls_expired_before():
        Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())


@transaction.atomic
def send_validation_again(*, version_id: UUID) -> None:
    """Nudge the validation once more; the next time is a deadline from now, however often the sweep comes by."""
    waiting = Version.objects.filter(pk=version_id, state=VersionState.VALIDATING.value)
    if waiting.update(validation_sent_at=timezone.now()):
        dispatch.nudge(dispatch.VALIDATE_VERSION, version_id=str(version_id))


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


def _urls_expired_before() -> datetime:
    return timezone.now() - timedelta(seconds=settings.UPLOAD_URL_TTL_S + 60)


def _ids(condition: Q) -> list[UUID]:
    return list(Version.objects.filter(condition).order_by("state_changed_at").values_list("pk", flat=True)[:MAX_SWEPT])
