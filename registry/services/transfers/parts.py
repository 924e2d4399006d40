"""A large file in parts: begin, ask what has arrived, get addresses for the rest, and have them put together.

Each version's parts are its own, so that two uploads of the same bytes don't touch each other. The store checks every
part against the digest that its address was made for; the whole is read back once when it is complete, since a digest
of digests says nothing of the file's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput, NotFound, UploadIncomplete, WrongState
from registry.models import UploadInParts, Version, VersionFile
from registry.naming import check_digest, object_key
from registry.permissions import Action, require_in_tenant
from registry.services.stores import artifact_store
from registry.services.uploads import check_stored, goes_in_parts, part_plan
from registry.services.validation import MAX_SWEPT
from registry.states import VersionState
from registry.stores.errors import ObjectMissing, StoreDigestMismatch
from registry.stores.parts import PartPlan
from registry.stores.ports import PresignedPut, StoredPart


@dataclass(frozen=True, slots=True)
class FileInParts:
    """How far the upload of one file is.

    Attributes:
        arrived: parts that the store has, by number, each with the digest it was checked against.
        addresses: presigned requests by number, for the parts that were asked for.
        stored: the whole file is there; nothing is left to do.

    """

    path: str
    plan: PartPlan
    arrived: tuple[StoredPart, ...] = ()
    addresses: tuple[tuple[int, PresignedPut], ...] = ()
    stored: bool = False


def start_parts(*, actor: Actor, version: Version, path: str, digests: Mapping[int, str]) -> FileInParts:
    """Begin or continue the upload of the file at ``path``, with addresses for the parts in ``digests``.

    ``digests`` has the SHA-256 (hex) of each part that is going to be sent, by its number from 1; it may be empty.

    Raises:
        InvalidInput: the file is too small for parts, or it has no such part.
        WrongState: the upload is over.

    """
    file = _file_in_parts(actor, version, path)
    if _is_stored(version, file):
        return FileInParts(path=path, plan=part_plan(file.artifact.size), stored=True)
    _require_uploading(version)
    upload, arrived = _begin_or_find(file)
    plan = PartPlan(file.artifact.size, upload.part_bytes)
    _check_digests(plan, digests)
    upload = _note_digests(upload, digests)
    return FileInParts(
        path=path,
        plan=plan,
        arrived=_with_digests(arrived, upload),
        addresses=_addresses(_key(file), upload, plan, digests),
    )


def list_parts(*, actor: Actor, version: Version, path: str) -> FileInParts:
    """How far the upload of the file at ``path`` is; nothing has arrived where it was not begun."""
    file = _file_in_parts(actor, version, path)
    upload = _upload_of(file)
    plan = part_plan(file.artifact.size) if upload is None else PartPlan(file.artifact.size, upload.part_bytes)
    if file.artifact.stored_at is not None or upload is None:
        return FileInParts(path=path, plan=plan, stored=file.artifact.stored_at is not None)
    try:
        arrived = artifact_store().list_parts(_key(file), upload.store_id)
    except ObjectMissing:
        arrived = ()
    return FileInParts(path=path, plan=plan, arrived=_with_digests(arrived, upload))


def complete_parts(*, actor: Actor, version: Version, path: str) -> FileInParts:
    """Have the store put the file together, and read it back. Quiet when the file is stored already.

    Raises:
        UploadIncomplete: a part has not arrived.
        StoreDigestMismatch: the parts make other bytes than the manifest says; they are gone.
        WrongState: the upload is over.

    """
    file = _file_in_parts(actor, version, path)
    if not _is_stored(version, file):
        _require_uploading(version)
        _put_together_and_read(version, file)
    _end(file)
    return FileInParts(path=path, plan=part_plan(file.artifact.size), stored=True)


def abort_upload_in_parts(*, upload_id: int) -> None:
    """Have the store forget parts that nobody waits for any more. Quiet if that was done already."""
    upload = UploadInParts.objects.select_related("artifact__tenant").filter(pk=upload_id).first()
    if upload is not None:
        key = object_key(tenant=upload.artifact.tenant.name, sha256=upload.artifact.sha256)
        artifact_store().abort_parts(key, upload.store_id)
        UploadInParts.objects.filter(pk=upload_id).delete()


def abandoned_uploads_in_parts() -> list[int]:
    """Uploads in parts of versions that are not being uploaded any more."""
    over = UploadInParts.objects.exclude(version__state=VersionState.UPLOADING.value)
    return list(over.order_by("pk").values_list("pk", flat=True)[:MAX_SWEPT])


def remove_abandoned_bytes() -> int:
    """Remove what killed uploads left in the store that no row speaks of; returns how many they were.

    An upload ends after its time to live, so that nothing begun before that is still wanted.
    """
    lifetime = timedelta(seconds=settings.UPLOAD_TTL_S + settings.UPLOAD_URL_TTL_S)
    return artifact_store().remove_abandoned(before=timezone.now() - lifetime)


def _file_in_parts(actor: Actor, version: Version, path: str) -> VersionFile:
    require_in_tenant(actor, Action.UPLOAD_VERSION, version.adapter.tenant_id)
    file = version.files.select_related("artifact__tenant").filter(path=path).first()
    if file is None:
        raise NotFound(_("%(version)s has no file %(path)s.") % {"version": version, "path": path}, field="path")
    if not goes_in_parts(file.artifact.size):
        raise InvalidInput(_("%(path)s is too small for parts: upload it as a whole.") % {"path": path}, field="path")
    return file


def _require_uploading(version: Version) -> None:
    if version.state != VersionState.UPLOADING:
        raise WrongState(
            _("%(version)s is %(state)s: its upload is over.") % {"version": version, "state": version.state}
        )


def _is_stored(version: Version, file: VersionFile) -> bool:
    try:
        check_stored(version, file)
    except (UploadIncomplete, StoreDigestMismatch):
        return False
    return True


def _check_digests(plan: PartPlan, digests: Mapping[int, str]) -> None:
    for number, sha256 in digests.items():
        if not 1 <= number <= plan.count:
            raise InvalidInput(
                _("There is no part %(number)d: the file has %(count)d.") % {"number": number, "count": plan.count},
                field="parts",
            )
        check_digest(sha256, field="parts")


def _upload_of(file: VersionFile) -> UploadInParts | None:
    return UploadInParts.objects.filter(version_id=file.version_id, artifact_id=file.artifact_id).first()


def _begin_or_find(file: VersionFile) -> tuple[UploadInParts, tuple[StoredPart, ...]]:
    store, key, upload = artifact_store(), _key(file), _upload_of(file)
    if upload is not None:
        try:
            return upload, store.list_parts(key, upload.store_id)
        except ObjectMissing:
            # Aborted by the store's own rules, or completed to bytes that were wrong and are gone.
            UploadInParts.objects.filter(pk=upload.pk).delete()
    store_id = store.start_parts(key)
    upload, is_new = UploadInParts.objects.get_or_create(
        version_id=file.version_id,
        artifact_id=file.artifact_id,
        defaults={"store_id": store_id, "part_bytes": part_plan(file.artifact.size).part_bytes},
    )
    if not is_new:
        store.abort_parts(key, store_id)
    return upload, ()


@transaction.atomic
def _note_digests(upload: UploadInParts, digests: Mapping[int, str]) -> UploadInParts:
    """The store wants each part's digest again when it puts them together, and may not tell it itself."""
    locked = UploadInParts.objects.select_for_update(of=("self",), no_key=True).filter(pk=upload.pk).first()
    if locked is None:
        raise UploadIncomplete(_("This upload was ended meanwhile. Begin it again."), field="path")
    if digests:
        locked.digests |= {str(number): sha256 for number, sha256 in digests.items()}
        locked.save(update_fields=["digests"])
    return locked


def _with_digests(parts: Sequence[StoredPart], upload: UploadInParts) -> tuple[StoredPart, ...]:
    return tuple(replace(part, sha256=part.sha256 or upload.digests.get(str(part.number), "")) for part in parts)


def _addresses(
    key: str, upload: UploadInParts, plan: PartPlan, digests: Mapping[int, str]
) -> tuple[tuple[int, PresignedPut], ...]:
    store = artifact_store()
    return tuple(
        (
            number,
            store.presign_part(
                key,
                upload.store_id,
                number=number,
                size=plan.size_of(number),
                sha256=sha256,
                expires_s=settings.UPLOAD_URL_TTL_S,
            ),
        )
        for number, sha256 in sorted(digests.items())
    )


def _put_together_and_read(version: Version, file: VersionFile) -> None:
    try:
        _put_together(file)
        check_stored(version, file)
    except StoreDigestMismatch:
        if not _parts_are_left(file):
            raise
        # The bytes that were wrong were another uploader's, and are gone.
        _put_together(file)
        check_stored(version, file)


def _parts_are_left(file: VersionFile) -> bool:
    upload = _upload_of(file)
    try:
        return upload is not None and bool(artifact_store().list_parts(_key(file), upload.store_id))
    except ObjectMissing:
        return False


def _put_together(file: VersionFile) -> None:
    """Complete the upload in the store. Quiet where the whole lies there already, read back or not."""
    missing = _complete_or_find_missing(file)
    # Whoever completes it at the same moment takes the parts away when the whole is there.
    if missing is not None and artifact_store().stat(_key(file)) is None:
        raise _not_arrived(file, missing)


def _complete_or_find_missing(file: VersionFile) -> int | None:
    """The number of a part that has not arrived; None if there is none and the upload was completed."""
    store, key, upload = artifact_store(), _key(file), _upload_of(file)
    if upload is None:
        return 1
    try:
        arrived = _with_digests(store.list_parts(key, upload.store_id), upload)
        missing = _first_missing(PartPlan(file.artifact.size, upload.part_bytes), arrived)
        if missing is None:
            store.complete_parts(key, upload.store_id, arrived)
    except ObjectMissing:
        return 1
    except StoreDigestMismatch:
        abort_upload_in_parts(upload_id=upload.pk)
        raise
    return missing


def _first_missing(plan: PartPlan, arrived: Sequence[StoredPart]) -> int | None:
    sizes = {part.number: part.size for part in arrived}
    return next((number for number in range(1, plan.count + 1) if sizes.get(number) != plan.size_of(number)), None)


def _not_arrived(file: VersionFile, number: int) -> UploadIncomplete:
    return UploadIncomplete(
        _("Part %(number)d of %(path)s has not arrived. Upload it, then complete again.")
        % {"number": number, "path": file.path},
        field=file.path,
    )


def _end(file: VersionFile) -> None:
    upload = _upload_of(file)
    if upload is not None:
        abort_upload_in_parts(upload_id=upload.pk)


def _key(file: VersionFile) -> str:
    return object_key(tenant=file.artifact.tenant.name, sha256=file.artifact.sha256)
