"""Removing bytes that nothing needs any more. The store is content-addressed, so one file may be many versions'.

A version is taken out of use first, in a transaction of its own: what fails in the middle of the removal leaves bytes
that the sweep finds, never a version that is to be served and has not all of its files.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from registry.models import Artifact, HubFile, Version, VersionFile
from registry.naming import object_key
from registry.selectors import versions_with_relations
from registry.services.stores import artifact_store
from registry.states import VersionState

# How many versions a sweep looks at; the rest are left to the next one.
MAX_SWEPT: Final = 100
_BYTES_GONE: Final = Q(version__state=VersionState.REJECTED.value) | Q(version__purged_at__isnull=False)


def unneeded_artifacts(*versions: Version) -> QuerySet[Artifact]:
    """The artifacts of these versions that nothing else needs: neither another version with its bytes, nor a draft."""
    keys = [version.pk for version in versions]
    others = VersionFile.objects.filter(artifact=OuterRef("pk")).exclude(_BYTES_GONE | Q(version__in=keys))
    drafts = HubFile.objects.filter(artifact=OuterRef("pk"))
    return Artifact.objects.filter(
        ~Exists(others), ~Exists(drafts), pk__in=VersionFile.objects.filter(version__in=keys).values("artifact")
    )


def remove_unneeded(version: Version) -> None:
    """Delete from the store what only this version needed, which is out of use. In a transaction that locks it."""
    release_artifacts(version.files.values_list("artifact_id", flat=True))


def release_artifacts(artifact_ids: Iterable[int]) -> None:
    """Delete from the store what neither a version nor a draft needs. Runs in the caller's transaction.

    The row locks keep a new upload from counting on bytes that are being deleted.
    """
    listed = Artifact.objects.filter(pk__in=list(artifact_ids)).order_by("sha256")
    keys = list(listed.select_for_update(of=("self",), no_key=True).values_list("pk", flat=True))
    needed = VersionFile.objects.filter(artifact=OuterRef("pk")).exclude(_BYTES_GONE)
    drafts = HubFile.objects.filter(artifact=OuterRef("pk"))
    for artifact in Artifact.objects.select_related("tenant").filter(~Exists(needed), ~Exists(drafts), pk__in=keys):
        artifact_store().delete(object_key(tenant=artifact.tenant.name, sha256=artifact.sha256))
        Artifact.objects.filter(pk=artifact.pk, stored_at__isnull=False).update(stored_at=None)


@transaction.atomic
def remove_bytes_of_purged(*, version_id: UUID) -> None:
    """Delete what only a version needs that retention has taken out of use. Quiet for any other version."""
    version = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version_id)
    if version.purged_at is not None:
        remove_unneeded(version)


def purged_with_bytes() -> list[UUID]:
    """Versions out of use of which there are still bytes that nothing needs: their removal broke off."""
    needed = VersionFile.objects.filter(artifact=OuterRef("artifact")).exclude(_BYTES_GONE)
    drafts = HubFile.objects.filter(artifact=OuterRef("artifact"))
    left = VersionFile.objects.filter(
        ~Exists(needed), ~Exists(drafts), artifact__stored_at__isnull=False, version__purged_at__isnull=False
    )
    return list(left.order_by("version").values_list("version", flat=True).distinct()[:MAX_SWEPT])
