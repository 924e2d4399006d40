"""What pages of adapters and versions show beside them. Each takes what the actor was given to see, or the actor."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform

from registry.actors import Actor
from registry.models import (
    Adapter,
    Approval,
    AuditRecord,
    PipelineSignature,
    Revalidation,
    ValidationReport,
    Version,
    VersionFile,
)
from registry.permissions import Action
from registry.ports import PORTS, PointedAlias, Use
from registry.reviews import POLICY_OF_VERSION
from registry.selectors import get_tenant, list_inbox, versions_with_relations


def versions_as_shown() -> QuerySet[Version]:
    """Versions with what a page of one shows of itself: policy, signature, and whether it ``is_revalidated`` now."""
    versions = versions_with_relations().select_related(POLICY_OF_VERSION, "signature__key")
    asked = Revalidation.objects.filter(version=OuterRef("pk"), finished_at__isnull=True)
    return versions.annotate(is_revalidated=Exists(asked))


def versions_with_report() -> QuerySet[Version]:
    """As ``versions_as_shown``, with ``newest_report``: the last report as JSON, or None."""
    reports = ValidationReport.objects.filter(version=OuterRef("pk")).order_by("-created_at", "-pk")
    return versions_as_shown().annotate(newest_report=Subquery(reports.values("report")[:1]))


def get_served(*, version: Version, key: UUID) -> Version:
    """A version of the same adapter as one that the caller was given to see, with its newest report."""
    return versions_with_report().get(pk=key, adapter=version.adapter_id)


def list_files(*, versions: Iterable[Version]) -> dict[Any, list[VersionFile]]:
    """The files of versions that the caller was given to see, by their versions' keys, in the order of their paths."""
    found: dict[Any, list[VersionFile]] = {version.pk: [] for version in versions}
    for file in VersionFile.objects.select_related("artifact").filter(version__in=list(found)).order_by("path"):
        found[file.version_id].append(file)
    return found


def list_aliases_of(*, adapters: Iterable[Adapter]) -> dict[int, list[PointedAlias]]:
    """The aliases that point at versions of adapters that the caller was given to see, by the adapters' keys."""
    found: dict[int, list[PointedAlias]] = {adapter.pk: [] for adapter in adapters}
    for alias in PORTS.aliases_of(adapter_ids=list(found)) if found else ():
        found[alias.adapter_id].append(alias)
    return found


def list_uses(*, version: Version) -> tuple[Use, ...]:
    """What aliases do with a version that the caller was given to see."""
    return PORTS.uses_of(version_id=version.pk)


def list_signed_by(*, version: Version) -> list[PipelineSignature]:
    """What pipelines signed of a version that the caller was given to see."""
    return list(PipelineSignature.objects.select_related("key", "attached_by").filter(version=version))


def list_records_of(*, actor: Actor, version: Version) -> QuerySet[AuditRecord]:
    """What the audit log says of the version, to those who may read the log of its tenant."""
    chain = get_tenant(actor=actor, name=version.adapter.tenant.name, action=Action.READ_AUDIT).name
    records = AuditRecord.objects.annotate(object_id=KeyTextTransform("id", "object"))
    return records.filter(object_id=str(version.pk), chain=chain)


def with_approvals(versions: QuerySet[Version]) -> QuerySet[Version]:
    """Read along what ``review_of_listed`` needs beside the policy."""
    approvals = Prefetch("approvals", Approval.objects.select_related("reviewer"))
    return versions.prefetch_related(None).prefetch_related(approvals, "approvals__reviewer__memberships")


def list_waiting(*, actor: Actor) -> QuerySet[Version]:
    """As ``list_inbox``, with no more than ``review_of_listed`` needs."""
    return with_approvals(list_inbox(actor=actor))


def find_next(*, actor: Actor, version: Version, is_backwards: bool = False) -> Version | None:
    """What waits for the actor after (or before) the version, which need not wait itself; the oldest comes first."""
    side, sign = ("lt", "-") if is_backwards else ("gt", "")
    same = Q(created_at=version.created_at, **{f"pk__{side}": version.pk})
    waiting = list_inbox(actor=actor).prefetch_related(None)
    beyond = waiting.filter(Q(**{f"created_at__{side}": version.created_at}) | same)
    return beyond.order_by(f"{sign}created_at", f"{sign}pk").first()
