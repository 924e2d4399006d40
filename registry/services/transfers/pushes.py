"""An adapter in one request: the same upload, with the bytes through this process, a little of them at a time.

The manifest comes first, so each file is checked while it goes to the store. A request that breaks off, or holds other
bytes than its manifest says, leaves an upload behind as any other would: the same push again goes on with it, and it
ends when its time to live is over.
"""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, Final

from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput, PayloadTooLarge
from registry.models import Adapter, Version
from registry.naming import object_key
from registry.services.stores import artifact_store
from registry.services.uploads import finalize_upload, start_upload
from registry.signing.manifest import SignedFile
from registry.states import VersionState
from registry.stores.errors import StoreDigestMismatch, StoreSizeMismatch

# What S3 takes in one PUT.
MAX_FILE_BYTES: Final = 5 * 1024**3


def push_version(
    *,
    actor: Actor,
    adapter: Adapter,
    base_revision: str,
    files: Sequence[SignedFile],
    parts: Iterable[tuple[str, BinaryIO]],
    name: str | None = None,
    lineage: dict[str, Any] | None = None,
) -> Version:
    """Upload ``parts`` (path and stream, each read before the next is asked for) as ``files`` declares, and finalize.

    Raises:
        InvalidInput: a part is not declared, comes twice, or is not what was declared; names its path.
        UploadIncomplete: a declared file has never come.
        PayloadTooLarge: a file is larger than one PUT may be.

    """
    _check_sizes(files)
    started = start_upload(
        actor=actor, adapter=adapter, base_revision=base_revision, files=files, name=name, lineage=lineage
    )
    declared = {file.path: file for file in files}
    for path, stream in parts:
        file = declared.pop(path, None)
        if file is None:
            raise _unexpected(path, known={file.path for file in files})
        if started.version.state == VersionState.UPLOADING:
            _store_part(adapter.tenant.name, file, stream)
    return finalize_upload(actor=actor, version=started.version)


def _check_sizes(files: Sequence[SignedFile]) -> None:
    for file in files:
        if file.size > MAX_FILE_BYTES:
            raise PayloadTooLarge(
                _("%(path)s is larger than %(limit)d bytes. Upload it in parts: lorekeeper push.")
                % {"path": file.path, "limit": MAX_FILE_BYTES},
                field=file.path,
            )


def _unexpected(path: str, *, known: set[str]) -> InvalidInput:
    if path in known:
        return InvalidInput(_("%(path)s comes twice in the request.") % {"path": path}, field=path)
    return InvalidInput(_("%(path)s is not in the manifest.") % {"path": path}, field=path)


def _store_part(tenant: str, file: SignedFile, stream: BinaryIO) -> None:
    key = object_key(tenant=tenant, sha256=file.sha256)
    try:
        artifact_store().put_stream(key, stream, size=file.size, sha256=file.sha256)
    except StoreSizeMismatch as error:
        raise InvalidInput(
            _("%(path)s has not the %(want)d bytes that the manifest says.") % {"path": file.path, "want": file.size},
            field=file.path,
        ) from error
    except StoreDigestMismatch as error:
        raise InvalidInput(
            _("%(path)s: its SHA-256 is not the one in the manifest.") % {"path": file.path}, field=file.path
        ) from error
