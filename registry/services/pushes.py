"""A small adapter in one multipart request: the same upload, with the bytes through the web process.

Every part is checked against the manifest before a version is made, so a bad request leaves nothing behind.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from django.conf import settings
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput, PayloadTooLarge
from registry.models import Adapter, Version
from registry.naming import object_key
from registry.permissions import Action, require_in_tenant
from registry.services.stores import artifact_store
from registry.services.uploads import check_manifest, finalize_upload, start_upload
from registry.signing.manifest import SignedFile

_CHUNK = 1024 * 1024


def push_version(
    *,
    actor: Actor,
    adapter: Adapter,
    base_revision: str,
    files: Sequence[SignedFile],
    parts: Mapping[str, BinaryIO],
    name: str | None = None,
    lineage: dict[str, Any] | None = None,
) -> Version:
    """Upload ``parts`` (open streams by path) as declared in ``files``, and finalize.

    Raises:
        InvalidInput: a part is missing, not declared, truncated, oversized or has another digest; names its path.
        PayloadTooLarge: more bytes than one request may carry.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, adapter.tenant_id)
    check_manifest(files)
    if sum(file.size for file in files) > settings.SMALL_PUSH_LIMIT:
        raise PayloadTooLarge(
            _("One request carries at most %(limit)d bytes. Use the upload in parts: lorekeeper push.")
            % {"limit": settings.SMALL_PUSH_LIMIT}
        )
    _check_parts(files, parts)
    started = start_upload(
        actor=actor, adapter=adapter, base_revision=base_revision, files=files, name=name, lineage=lineage
    )
    for file in files:
        part = parts[file.path]
        part.seek(0)
        key = object_key(tenant=adapter.tenant.name, sha256=file.sha256)
        artifact_store().put_stream(key, part, size=file.size, sha256=file.sha256)
    return finalize_upload(actor=actor, version=started.version)


def _check_parts(files: Sequence[SignedFile], parts: Mapping[str, BinaryIO]) -> None:
    declared = {file.path for file in files}
    for path in sorted(parts.keys() - declared):
        raise InvalidInput(_("%(path)s is not in the manifest.") % {"path": path}, field=path)
    for file in files:
        if file.path not in parts:
            raise InvalidInput(
                _("%(path)s is in the manifest but not in the request.") % {"path": file.path}, field=file.path
            )
        _check_part(file, parts[file.path])


def _check_part(file: SignedFile, part: BinaryIO) -> None:
    digest, size = hashlib.sha256(), 0
    part.seek(0)
    while chunk := part.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
    if size != file.size:
        raise InvalidInput(
            _("%(path)s has %(got)d bytes; the manifest says %(want)d.")
            % {"path": file.path, "got": size, "want": file.size},
            field=file.path,
        )
    if digest.hexdigest() != file.sha256:
        raise InvalidInput(
            _("%(path)s: its SHA-256 is not the one in the manifest.") % {"path": file.path}, field=file.path
        )
