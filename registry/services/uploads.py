"""Uploads: a manifest first, then the bytes straight to the store (large files in parts), then finalize.

The manifest fixes the version's identity (paths, sizes, digests, base revision) before a byte moves, so a retry is the
same upload and different bytes can never take its place.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import dispatch, events
from registry.actors import Actor
from registry.errors import InvalidInput, PermissionDenied, StaleState, UploadIncomplete, VersionExists
from registry.models import Adapter, Artifact, BaseModelRevision, Version, VersionFile
from registry.naming import (
    MAX_FILES,
    check_digest,
    check_file_kind,
    check_manifest_paths,
    check_version_name,
    default_version_name,
    engine_name,
    object_key,
)
from registry.permissions import Action, require_in_tenant
from registry.selectors import find_base_revision, versions_with_relations
from registry.services.lineage import accept_lineage
from registry.services.stores import artifact_store
from registry.signing.manifest import SignedFile, root_digest
from registry.states import VersionState
from registry.stores.errors import StoreDigestMismatch
from registry.stores.parts import PartPlan
from registry.stores.ports import PresignedPut, StoredObject
from registry.transitions import move_version

_RESUMABLE: Final = frozenset(
    {VersionState.UPLOADING, VersionState.VALIDATING, VersionState.CANDIDATE, VersionState.APPROVED}
)

_COUNTER_DIGITS: Final = 9
_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """Where one file of the manifest goes; ``stored`` files need no PUT.

    A file with ``part_bytes`` may go in parts of that size instead: see ``services.transfers.parts``.
    """

    path: str
    put: PresignedPut
    stored: bool
    part_bytes: int | None


@dataclass(frozen=True, slots=True)
class StartedUpload:
    version: Version
    targets: tuple[UploadTarget, ...]
    resumed: bool


def start_upload(
    *,
    actor: Actor,
    adapter: Adapter,
    base_revision: str,
    files: Sequence[SignedFile],
    name: str | None = None,
    lineage: dict[str, Any] | None = None,
) -> StartedUpload:
    """Create a version in state *uploading*, or find the same upload again.

    Raises:
        InvalidInput: a path, size, digest or name that can't be accepted; names the field.
        VersionExists: the name is taken by other content or another person.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, adapter.tenant_id)
    uploader_id = _uploader(actor)
    check_manifest(files)
    if name is not None:
        check_version_name(name, field="name")
    revision = find_base_revision(base_model=adapter.base_model.name, label=base_revision)
    version, resumed = _create_or_find(
        actor=actor,
        uploader_id=uploader_id,
        adapter=adapter,
        revision=revision,
        files=files,
        name=name,
        lineage=accept_lineage(adapter=adapter, lineage=lineage or {}),
    )
    return StartedUpload(version=version, targets=_targets(version), resumed=resumed)


def finalize_upload(*, actor: Actor, version: Version) -> Version:
    """Check that the store holds every file as declared, then hand the version to validation. Idempotent.

    Raises:
        UploadIncomplete: names the file that is missing or differs.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, version.adapter.tenant_id)
    if version.state != VersionState.UPLOADING:
        return version
    for file in version.files.select_related("artifact"):
        check_stored(version, file)
    with transaction.atomic():
        locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
        if locked.state != VersionState.UPLOADING:
            return locked
        Artifact.objects.filter(files__version=locked, stored_at__isnull=True).update(stored_at=timezone.now())
        move_version(locked, was=VersionState.UPLOADING, to=VersionState.VALIDATING)
        events.version_moved(
            actor=actor,
            version=locked,
            action="finalize",
            was=VersionState.UPLOADING,
            to=VersionState.VALIDATING,
        )
        dispatch.nudge(dispatch.VALIDATE_VERSION, version_id=str(locked.pk))
    return locked


def check_manifest(files: Sequence[SignedFile]) -> None:
    """Refuse a manifest that names something an adapter can't be made of. Raises ``InvalidInput``."""
    if not files:
        raise InvalidInput(_("The manifest lists no files."), field="files")
    if len(files) > MAX_FILES:
        raise InvalidInput(_("An adapter has at most %(most)d files.") % {"most": MAX_FILES}, field="files")
    check_manifest_paths([file.path for file in files], field="files")
    for file in files:
        check_file_kind(file.path)
        check_digest(file.sha256)
        if file.size < 0:
            raise InvalidInput(_("%(path)s: a size is not negative.") % {"path": file.path}, field="size")
    if sum(file.size for file in files) > settings.MAX_VERSION_BYTES:
        raise InvalidInput(
            _("The files are larger than the limit of %(limit)d bytes together.")
            % {"limit": settings.MAX_VERSION_BYTES},
            field="size",
        )


@transaction.atomic
def _create_or_find(
    *,
    actor: Actor,
    uploader_id: int,
    adapter: Adapter,
    revision: BaseModelRevision,
    files: Sequence[SignedFile],
    name: str | None,
    lineage: dict[str, Any],
) -> tuple[Version, bool]:
    # The adapter's row orders all uploads of one adapter: names and counters are given out one at a time.
    Adapter.objects.select_for_update(no_key=True).get(pk=adapter.pk)
    digest = root_digest(files)
    known = _same_upload(uploader_id, adapter, revision, digest, name)
    if known is not None:
        return known, True
    version = _insert_version(uploader_id, adapter, revision, digest, name or _next_name(adapter), lineage)
    _insert_files(version, files)
    events.upload_started(actor=actor, version=version)
    return version, False


def _uploader(actor: Actor) -> int:
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person's token uploads, so that four eyes can be told apart."))
    return actor.person_id


def _same_upload(
    uploader_id: int, adapter: Adapter, revision: BaseModelRevision, digest: str, name: str | None
) -> Version | None:
    """The version this upload already made: by its name, or else by its content while it is still uploading."""
    versions = versions_with_relations().filter(adapter=adapter)
    if name is None:
        return versions.filter(
            uploader_id=uploader_id,
            base_revision=revision,
            root_digest=digest,
            state=VersionState.UPLOADING.value,
        ).first()
    version = versions.filter(name=name).first()
    if version is None:
        return None
    same = (version.uploader_id, version.base_revision_id, version.root_digest) == (
        uploader_id,
        revision.pk,
        digest,
    )
    if same and version.state in _RESUMABLE and version.purged_at is None:
        return version
    raise VersionExists(
        _("Version %(version)s already exists (%(state)s). A version number is never used again: choose another name.")
        % {"version": version, "state": version.state},
        field="name",
    )


def _next_name(adapter: Adapter) -> str:
    today = timezone.now().date()
    taken = Version.objects.filter(adapter=adapter, name__startswith=f"{today:%Y-%m-%d}.").values_list(
        "name", flat=True
    )
    endings = [name.rpartition(".")[2] for name in taken]
    # A name that somebody chose may end with more digits than a default name has room for.
    counters = [int(ending) for ending in endings if ending.isdigit() and len(ending) <= _COUNTER_DIGITS]
    return default_version_name(today, max(counters, default=0) + 1)


def _insert_version(
    uploader_id: int,
    adapter: Adapter,
    revision: BaseModelRevision,
    digest: str,
    name: str,
    lineage: dict[str, Any],
) -> Version:
    identity = {"tenant": adapter.tenant.name, "adapter": adapter.name, "version": name}
    version = Version.objects.create(
        adapter=adapter,
        name=name,
        base_revision=revision,
        uploader_id=uploader_id,
        root_digest=digest,
        engine_name=engine_name(**identity, base_digest=revision.digest, root_digest=digest),
        lineage=lineage,
        state_changed_at=timezone.now(),
    )
    return versions_with_relations().get(pk=version.pk)


def _insert_files(version: Version, files: Sequence[SignedFile]) -> None:
    tenant = version.adapter.tenant
    sizes = {file.sha256: file.size for file in files}
    Artifact.objects.bulk_create(
        [Artifact(tenant=tenant, sha256=sha256, size=size) for sha256, size in sorted(sizes.items())],
        ignore_conflicts=True,
    )
    # The row locks keep a purge of another version from deleting bytes that this one counts on.
    artifacts = {
        artifact.sha256: artifact
        for artifact in Artifact.objects.select_for_update(no_key=True)
        .filter(tenant=tenant, sha256__in=list(sizes))
        .order_by("sha256")
    }
    for file in files:
        _agree_on_size(artifacts[file.sha256], file)
    VersionFile.objects.bulk_create(
        VersionFile(version=version, path=file.path, artifact=artifacts[file.sha256]) for file in files
    )


def _agree_on_size(artifact: Artifact, file: SignedFile) -> None:
    """The size of stored bytes is known; before, a manifest may have been wrong, and must not block the right one."""
    if artifact.size == file.size:
        return
    if artifact.stored_at is not None:
        raise InvalidInput(
            _("%(path)s: a file with this digest is known with another size.") % {"path": file.path}, field=file.path
        )
    artifact.size = file.size
    artifact.save(update_fields=["size"])


def _targets(version: Version) -> tuple[UploadTarget, ...]:
    store, tenant = artifact_store(), version.adapter.tenant.name
    return tuple(
        UploadTarget(
            path=file.path,
            put=store.presign_put(
                object_key(tenant=tenant, sha256=file.artifact.sha256),
                size=file.artifact.size,
                sha256=file.artifact.sha256,
                expires_s=settings.UPLOAD_URL_TTL_S,
            ),
            stored=file.artifact.stored_at is not None,
            part_bytes=part_plan(file.artifact.size).part_bytes if goes_in_parts(file.artifact.size) else None,
        )
        for file in version.files.select_related("artifact")
    )


def goes_in_parts(size: int) -> bool:
    """Whether a file of ``size`` bytes is large enough to be uploaded in parts."""
    return size > settings.UPLOAD_PARTS_FROM


def part_plan(size: int) -> PartPlan:
    return PartPlan.of(size, part_bytes=settings.UPLOAD_PART_BYTES)


def check_stored(version: Version, file: VersionFile) -> None:
    """Check that the store holds ``file`` as the manifest says. What came in parts is read once, and noted as stored.

    Raises:
        UploadIncomplete: it isn't there, or differs.
        StoreDigestMismatch: the parts make other bytes; they are gone, so that the right ones can be uploaded.

    """
    key = object_key(tenant=version.adapter.tenant.name, sha256=file.artifact.sha256)
    stored = artifact_store().stat(key)
    if stored is None:
        _note_missing(file, key)
        raise UploadIncomplete(
            _("%(path)s has not arrived. Upload it, then finalize again.") % {"path": file.path}, field=file.path
        )
    if stored.sha256 is None and not _is_noted(file):
        _read_back(file, stored)
    elif stored.size != file.artifact.size or stored.sha256 not in {None, file.artifact.sha256}:
        raise UploadIncomplete(
            _("%(path)s in the store differs from the manifest: %(got)d bytes instead of %(want)d.")
            % {"path": file.path, "got": stored.size, "want": file.artifact.size},
            field=file.path,
        )


def _note_missing(file: VersionFile, key: str) -> None:
    """A purge killed before its commit has deleted bytes that are still noted as stored: have them sent again."""
    if not _is_noted(file):
        return
    with transaction.atomic():
        artifact = Artifact.objects.select_for_update(of=("self",), no_key=True).get(pk=file.artifact_id)
        if artifact_store().stat(key) is None:
            artifact.stored_at = None
            artifact.save(update_fields=["stored_at"])


def _is_noted(file: VersionFile) -> bool:
    return Artifact.objects.filter(pk=file.artifact_id, stored_at__isnull=False).exists()


def _read_back(file: VersionFile, stored: StoredObject) -> None:
    """Find out whether an object that the store doesn't vouch for is what its key says; note it, or remove it."""
    store = artifact_store()
    right = stored.size == file.artifact.size and _sha256_of(stored.key) == file.artifact.sha256
    with transaction.atomic():
        artifact = Artifact.objects.select_for_update(of=("self",), no_key=True).get(pk=file.artifact_id)
        # Objects are removed under this lock alone, and never replaced: what was read is what lies there now.
        now = store.stat(stored.key)
        if now is None or now.tag != stored.tag:
            raise StaleState(_("%(path)s changed in the store. Finalize again.") % {"path": file.path}, field=file.path)
        if right:
            artifact.stored_at = artifact.stored_at or timezone.now()
            artifact.save(update_fields=["stored_at"])
        elif artifact.stored_at is None:
            store.delete(stored.key)
    if not right:
        raise StoreDigestMismatch(
            _("%(path)s: its parts make other bytes than the manifest says. Upload it again.") % {"path": file.path},
            field=file.path,
        )


def _sha256_of(key: str) -> str:
    digest = hashlib.sha256()
    with artifact_store().open(key) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
