"""Push a folder as a version: manifest, create or resume, parallel uploads (large files in parts), finalize."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from client.errors import NotFound, PermissionDenied, VersionExists
from client.manifest import LocalFile, read_manifest
from client.parallel import CancelSwitch, run_all
from client.parts import PartsSender
from client.progress import SilentProgress
from client.refs import PairRef, VersionRef
from client.storage import Storage, UrlExpired

if TYPE_CHECKING:
    from pathlib import Path

    from client.models import Upload, Version, VersionFile, VersionUpload
    from client.progress import Progress
    from client.resources.versions import Versions

DEFAULT_WORKERS = 4


@dataclass(frozen=True, slots=True)
class PushResult:
    """A finalized version and what had to be moved for it (bytes); `resumed` if an earlier push had begun it."""

    version: Version
    files: int
    moved_files: int
    moved_bytes: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class PushRequest:
    """What to push where. Without `name` the server gives the next free one."""

    adapter: PairRef
    base_revision: str
    name: str | None = None
    lineage: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Pusher:
    """Runs pushes over one connection."""

    versions: Versions
    storage: Storage
    progress: Progress = field(default_factory=SilentProgress)
    workers: int = DEFAULT_WORKERS

    def push(self, folder: Path, request: PushRequest) -> PushResult:
        """Push every file of `folder`; a push that was killed continues where it stopped.

        Raises:
            FolderRefused: something in the folder can't be pushed.
            VersionExists: the name is taken by other files, or by somebody else's upload.
            TransferFailed: the store refused a file.

        """
        sources = read_manifest(folder, progress=self.progress)
        files = tuple(source.declared for source in sources)
        earlier = self._earlier_push(request, files)
        name = earlier.name if earlier else request.name
        if earlier is not None and earlier.state != "uploading":
            return PushResult(earlier, files=len(files), moved_files=0, moved_bytes=0, resumed=True)
        opened = self._open(request, name, files)
        moved = self._upload(request, opened, sources)
        ref = VersionRef(request.adapter.tenant, request.adapter.name, opened.version.name)
        version = self.versions.finalize(ref)
        return PushResult(
            version=version,
            files=len(files),
            moved_files=len(moved),
            moved_bytes=sum(moved),
            resumed=earlier is not None or any(upload.stored for upload in opened.uploads),
        )

    def _earlier_push(self, request: PushRequest, files: tuple[VersionFile, ...]) -> Version | None:
        """Find the version that an earlier try of this very push left behind.

        Without a name each try would get a new one from the server, and an upload would never be continued.
        """
        wanted = _fingerprint(request.base_revision, files)
        for version in self._candidates(request):
            if _fingerprint(version.base_revision, version.files) == wanted:
                return version
        return None

    def _candidates(self, request: PushRequest) -> tuple[Version, ...]:
        try:
            if request.name is not None:
                return (self.versions.get(VersionRef(request.adapter.tenant, request.adapter.name, request.name)),)
            return tuple(version for version in self.versions.all(request.adapter) if not version.settled)
        except (NotFound, PermissionDenied):
            return ()  # nothing there, or a token that may upload but not read: the push itself tells what is wrong

    def _open(self, request: PushRequest, name: str | None, files: tuple[VersionFile, ...]) -> VersionUpload:
        create = partial(
            self.versions.create,
            request.adapter,
            base_revision=request.base_revision,
            files=files,
            lineage=request.lineage,
        )
        try:
            return create(name=name)
        except VersionExists:
            if request.name is not None:
                raise
            return create(name=None)  # the identical upload found belongs to somebody else

    def _upload(self, request: PushRequest, opened: VersionUpload, sources: tuple[LocalFile, ...]) -> tuple[int, ...]:
        """Upload what isn't stored; ask once for fresh URLs if the first ones expire on the way.

        Returns the bytes of each file that something had to be moved for.
        """
        try:
            return self._upload_missing(opened, sources)
        except UrlExpired:
            fresh = self._open(request, opened.version.name, tuple(source.declared for source in sources))
            return self._upload_missing(fresh, sources)

    def _upload_missing(self, opened: VersionUpload, sources: tuple[LocalFile, ...]) -> tuple[int, ...]:
        by_path = {upload.path: upload for upload in opened.uploads if not upload.stored}
        missing = [(by_path[path], source) for source in sources if (path := source.declared.path) in by_path]
        jobs = [partial(self._put, upload, source) for upload, source in missing if upload.part_bytes is None]
        moved = run_all(jobs, workers=self.workers)
        version = opened.version
        ref = VersionRef(version.tenant, version.adapter, version.name)
        sender = PartsSender(self.versions, self.storage, ref, self.progress, self.workers)
        moved += [sender.send(source) for upload, source in missing if upload.part_bytes is not None]
        return tuple(count for count in moved if count is not None)

    def _put(self, upload: Upload, source: LocalFile, cancel: CancelSwitch) -> int | None:
        """The bytes moved, or None if the store had the file already."""
        is_new = self.storage.put(upload, source, progress=self.progress, cancel=cancel)
        return source.declared.size if is_new else None


def _fingerprint(base_revision: str, files: tuple[VersionFile, ...]) -> tuple[str, frozenset[tuple[str, int, str]]]:
    return base_revision, frozenset((file.path, file.size, file.sha256) for file in files)
