"""The node's disk: each file once by its digest, and one folder per version made of hard links to them.

    blobs/<sha256>             read-only files; the number of hard links counts the versions that use one
    versions/<engine_name>/    what an engine reads, with `model.sig` and `release.intoto.json`
    partial/                   downloads that are not complete, and versions half built or half deleted

`blobs` and `versions` hold only whole things: what is built in `partial` is synced and then renamed.
Files are replaced, never changed in place, since an engine may read them at any time.
"""

import hashlib
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from workers.node.commands import WantedFile, check_engine_name
from workers.node.durable import sync_file, sync_folder, write_durably
from workers.node.errors import DiskFullError

_log = logging.getLogger(__name__)

RESERVED_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**20
_READ_ONLY = 0o444


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write to the folder's disk."""
    return shutil.disk_usage(folder).free


class DiskCache:
    """All methods but `names` and `folder` are called by one thread at a time."""

    def __init__(
        self, root: Path, *, budget_bytes: int | None = None, free: Callable[[Path], int] = free_bytes
    ) -> None:
        self._blobs = root / "blobs"
        self._versions = root / "versions"
        self._partial = root / "partial"
        self._budget_bytes = budget_bytes
        self._free = free

    def prepare(self) -> None:
        """Make the folders, and clear what a crash left: half-done things, and blobs that no version uses."""
        shutil.rmtree(self._partial, ignore_errors=True)
        for folder in (self._blobs, self._versions, self._partial):
            folder.mkdir(parents=True, exist_ok=True)
        self._drop_unused_blobs()

    def folder(self, engine_name: str) -> Path:
        """Where the version's files are or will be; the only paths that an engine is ever told."""
        return self._versions / check_engine_name(engine_name)

    def names(self) -> tuple[str, ...]:
        """The versions on disk."""
        return tuple(sorted(path.name for path in self._versions.glob("lk-*")))

    def missing(self, files: Iterable[WantedFile]) -> tuple[WantedFile, ...]:
        """One file for each digest that is not there with its size."""
        wanted = {file.sha256: file for file in files}
        return tuple(file for file in wanted.values() if not self._has(file))

    def ensure_room(self, files: Iterable[WantedFile]) -> None:
        """Raise `DiskFullError` unless these files fit under the budget and on the disk."""
        need = sum(file.size for file in files)
        free = self._free(self._blobs) - RESERVED_BYTES
        if need > free:
            raise DiskFullError(f"needs {need} bytes, the disk has {max(free, 0)} to give")
        if self._budget_bytes is None:
            return
        left = self._budget_bytes - sum(path.stat().st_size for path in self._blobs.iterdir())
        if need > left:
            raise DiskFullError(f"needs {need} bytes, {max(left, 0)} of the budget of {self._budget_bytes} are left")

    def partial_path(self, sha256: str) -> Path:
        """Where to download this blob to."""
        return self._partial / f"{sha256}.part"

    def adopt(self, partial: Path, sha256: str) -> None:
        """Make a complete download, whose digest the caller has checked, a blob."""
        partial.chmod(_READ_ONLY)
        sync_file(partial)
        partial.replace(self._blobs / sha256)
        sync_folder(self._blobs)

    def place(self, engine_name: str, files: Iterable[WantedFile], texts: Mapping[str, str]) -> Path:
        """Build the version's folder from blobs and `texts` (name to content), or mend the one that is there.

        A new folder appears as a whole. In one that is there each wrong file is replaced in one step, since an engine
        may be reading, and what doesn't belong there is removed.
        """
        target = self.folder(engine_name)
        build = target if target.is_dir() else self._partial / f"{engine_name}.{uuid.uuid4().hex}"
        listed = tuple(files)
        for file in listed:
            self._link(file, build / file.path)
        for name, text in texts.items():
            write_durably(build / name, text.encode())
        if build == target:
            _remove_strangers(build, {*(file.path for file in listed), *texts})
        _sync_tree(build)
        if build != target:
            build.rename(target)
            sync_folder(self._versions)
        return target

    def drop_corrupted(self, files: Iterable[WantedFile]) -> int:
        """Remove each of these blobs whose bytes are not its digest's any more; how many were removed."""
        corrupted = [file.sha256 for file in files if self._has(file) and self._digest_of(file.sha256) != file.sha256]
        for sha256 in corrupted:
            _log.error("the blob %s is corrupted on disk: removed", sha256)
            (self._blobs / sha256).unlink()
        return len(corrupted)

    def delete(self, engine_name: str) -> None:
        """Delete the version's folder, then the blobs that no other version uses; not there is success."""
        folder = self.folder(engine_name)
        if folder.is_dir():
            doomed = self._partial / f"{engine_name}.{uuid.uuid4().hex}"
            folder.rename(doomed)
            sync_folder(self._versions)
            shutil.rmtree(doomed)
        self._drop_unused_blobs()

    def _has(self, file: WantedFile) -> bool:
        path = self._blobs / file.sha256
        return path.is_file() and path.stat().st_size == file.size

    def _link(self, file: WantedFile, path: Path) -> None:
        blob = self._blobs / file.sha256
        if path.is_file() and not path.is_symlink() and path.samefile(blob):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._partial / f"{file.sha256}.{uuid.uuid4().hex}"
        os.link(blob, temporary)
        temporary.replace(path)

    def _digest_of(self, sha256: str) -> str:
        digest = hashlib.sha256()
        with (self._blobs / sha256).open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
        return digest.hexdigest()

    def _drop_unused_blobs(self) -> None:
        unused = [path for path in self._blobs.iterdir() if path.stat().st_nlink == 1]
        for path in unused:
            path.unlink()
        if unused:
            sync_folder(self._blobs)


def _remove_strangers(folder: Path, paths: set[str]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in paths:
            path.unlink()


def _sync_tree(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
