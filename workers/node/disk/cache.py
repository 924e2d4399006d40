"""The node's disk: each file once by its digest, and one folder per version made of hard links to them.

    blobs/<sha256>             read-only files
    versions/<engine_name>/    what an engine reads, with `model.sig` and `release.intoto.json`
    partial/                   downloads that are not complete, and versions half built or half deleted

`blobs` and `versions` hold only whole things: what is built in `partial` is synced and then renamed.
Files are replaced, never changed in place, since an engine may read them at any time.
"""

import hashlib
import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import IO

from registry.naming import ATTESTATION_FILE, BUNDLE_FILE
from workers.node.commands import WantedFile, check_engine_name
from workers.node.disk.index import NO_BLOB, Index, Kept
from workers.node.durable import LOST, sync_file, sync_folder, write_durably
from workers.node.errors import DiskFullError

_log = logging.getLogger(__name__)

RESERVED_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**20
_READ_ONLY = 0o444
# How soon a waiting thread notices that it need not wait any more.
_GLANCE_S = 0.5
_SEALS = frozenset({BUNDLE_FILE, ATTESTATION_FILE})


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write to the folder's disk."""
    return shutil.disk_usage(folder).free


class DiskCache:
    """Shared by threads, each working on another version; `clock` gives unix seconds."""

    def __init__(
        self,
        root: Path,
        *,
        free: Callable[[Path], int] = free_bytes,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._blobs = root / "blobs"
        self._versions = root / "versions"
        self._partial = root / "partial"
        self._free = free
        self._clock = clock
        self._index = Index()
        self._changed = Condition()
        self._downloading: set[str] = set()
        self._reserved = 0

    def prepare(self) -> None:
        """Make the folders, read what is there, and clear what a crash left: half-done things, blobs without a user."""
        shutil.rmtree(self._partial, ignore_errors=True)
        for folder in (self._blobs, self._versions, self._partial):
            folder.mkdir(parents=True, exist_ok=True)
        self._index = Index()
        by_inode = {}
        for entry in os.scandir(self._blobs):
            status = entry.stat(follow_symlinks=False)
            if status.st_nlink == 1:
                Path(entry.path).unlink()
                continue
            by_inode[status.st_ino] = entry.name
            self._index.add_blob(entry.name, status.st_size)
        sync_folder(self._blobs)
        for folder in self._versions.glob("lk-*"):
            files = (path for path in folder.rglob("*") if path.name not in _SEALS and not path.is_dir())
            used = {by_inode.get(path.stat(follow_symlinks=False).st_ino, NO_BLOB) for path in files}
            self._index.add_version(folder.name, used, at=folder.stat().st_mtime)
        self._drop_unused(tuple(self._index.sizes))

    # --- what is there

    def folder(self, engine_name: str) -> Path:
        """Where the version's files are or will be; the only paths that an engine is ever told."""
        return self._versions / check_engine_name(engine_name)

    def name_of(self, root: str) -> str | None:
        """The version whose files are read by who has this path, links and dots followed; None: none of them."""
        parent, _, name = root.rpartition("/")
        if parent == str(self._versions) and name not in {"", ".", ".."}:
            return name
        try:
            inside = Path(root).resolve().relative_to(self._versions.resolve())
        except (ValueError, OSError, RuntimeError):
            return None
        return inside.parts[0] if inside.parts else None

    def names(self) -> tuple[str, ...]:
        """The versions on disk, sorted."""
        with self._changed:
            return self._index.names()

    def has(self, engine_name: str) -> bool:
        """Whether the version's folder is there."""
        with self._changed:
            return self._index.has(engine_name)

    def kept(self) -> tuple[Kept, ...]:
        """Each version with its last use and what its deletion would free."""
        with self._changed:
            return self._index.kept()

    def version_bytes(self) -> dict[str, int]:
        """The bytes of each version's files, shared ones with each that has them."""
        with self._changed:
            return self._index.version_bytes()

    def blobs(self) -> Mapping[str, int]:
        """The size of each blob by its digest."""
        with self._changed:
            return dict(self._index.sizes)

    def incomplete(self) -> tuple[str, ...]:
        """Versions with a file that was found corrupted, until they are placed again."""
        with self._changed:
            return self._index.incomplete()

    def is_complete(self, engine_name: str) -> bool:
        """Whether no file of the version was found corrupted since it was placed."""
        with self._changed:
            return self._index.is_complete(engine_name)

    def used_bytes(self) -> int:
        """What the blobs take, and what is being downloaded is going to."""
        with self._changed:
            return self._index.used_bytes + self._reserved

    def free_bytes(self) -> int:
        """What the disk has to give beside a reserve; a download takes all its room when it begins."""
        return max(0, self._free(self._blobs) - RESERVED_BYTES)

    def note_use(self, names: Iterable[str]) -> None:
        """These are in use now; remembered as long as this process lives."""
        now = self._clock()
        with self._changed:
            for name in names:
                self._index.touch(name, at=now)

    def touch(self, engine_name: str) -> None:
        """Note that the version was used now; so it is dropped later than others. Remembered by its folder's time."""
        with self._changed:
            if not self._index.has(engine_name):
                return
            self._index.touch(engine_name, at=self._clock())
        try:
            os.utime(self.folder(engine_name), (self._clock(), self._clock()))
        except FileNotFoundError:
            _log.debug("%s is gone already", engine_name)

    def missing(self, files: Iterable[WantedFile]) -> tuple[WantedFile, ...]:
        """One file for each digest that is not there with its size."""
        wanted = {file.sha256: file for file in files}
        return tuple(file for file in wanted.values() if not self._has(file))

    # --- bringing files in

    @contextmanager
    def pinned(self, files: Iterable[WantedFile]) -> Iterator[None]:
        """Keep the blobs of these files while in the block, though no version uses them yet."""
        digests = {file.sha256 for file in files}
        with self._changed:
            self._index.pin(digests)
        try:
            yield
        finally:
            with self._changed:
                self._index.unpin(digests)
                self._drop_unused(digests)

    @contextmanager
    def downloading(self, files: Iterable[WantedFile], *, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Be the only one who downloads these digests while in the block; whoever else wants one waits.

        `check` is called now and then while waiting, and may raise.
        """
        digests = {file.sha256 for file in files}
        with self._changed:
            while not self._changed.wait_for(lambda: not digests & self._downloading, _GLANCE_S):
                check()
            self._downloading |= digests
        try:
            yield
        finally:
            with self._changed:
                self._downloading -= digests
                self._changed.notify_all()

    @contextmanager
    def room_for(self, files: Iterable[WantedFile], *, budget_bytes: int | None) -> Iterator[None]:
        """Set aside what these files will take while in the block.

        Raises:
            DiskFullError: they don't fit under the budget, or on the disk.

        """
        need = sum(file.size for file in files)
        with self._changed:
            self._expect_room(need, budget_bytes)
            self._reserved += need
        try:
            yield
        finally:
            with self._changed:
                self._reserved -= need

    def partial_path(self, sha256: str) -> Path:
        """Where to download this blob to."""
        return self._partial / f"{sha256}.part"

    def adopt(self, partial: Path, sha256: str) -> None:
        """Make a complete download, whose digest the caller has checked, a blob; the caller has pinned it."""
        partial.chmod(_READ_ONLY)
        sync_file(partial)
        size = partial.stat().st_size
        with self._changed:
            partial.replace(self._blobs / sha256)
            # Who had the one before has that still, whatever became of it.
            self._index.lose_blob(sha256)
            self._index.add_blob(sha256, size)
        sync_folder(self._blobs)

    def place(self, engine_name: str, files: Iterable[WantedFile], texts: Mapping[str, str]) -> Path:
        """Build the version's folder from blobs and `texts` (name to content), or mend the one that is there.

        A new folder appears as a whole. In one that is there each wrong file is replaced in one step, since an engine
        may be reading, and what doesn't belong there is removed.
        """
        target = self.folder(engine_name)
        listed = tuple(files)
        if target.is_dir():
            self._fill(target, listed, texts)
        else:
            build = self._partial / f"{engine_name}.{uuid.uuid4().hex}"
            self._fill(build, listed, texts)
            build.rename(target)
            sync_folder(self._versions)
        with self._changed:
            self._index.add_version(engine_name, (file.sha256 for file in listed), at=self._clock())
        return target

    # --- taking files out

    def drop_corrupted(self, files: Iterable[WantedFile]) -> int:
        """Remove each of these blobs whose bytes are not its digest's any more; how many were removed."""
        return sum(self.drop_if_corrupted(file.sha256) for file in files if self._has(file))

    def drop_if_corrupted(self, sha256: str, *, after: Callable[[int], None] = lambda _: None) -> bool:
        """Read the blob, calling `after` with the size of each chunk, and remove it if its bytes are others.

        The versions that use it keep their links to the wrong bytes until they are placed again.
        """
        path = self._blobs / sha256
        try:
            with path.open("rb") as file:
                return not _is_sound(file, sha256, after) and self._remove_blob(path, os.fstat(file.fileno()))
        except FileNotFoundError:
            return False

    def delete(self, engine_name: str) -> None:
        """Delete the version's folder, then the blobs that no other version uses; not there is success."""
        folder = self.folder(engine_name)
        if folder.is_dir():
            doomed = self._partial / f"{engine_name}.{uuid.uuid4().hex}"
            folder.rename(doomed)
            sync_folder(self._versions)
            shutil.rmtree(doomed)
        with self._changed:
            self._drop_unused(self._index.drop_version(engine_name))

    def _remove_blob(self, path: Path, read: os.stat_result) -> bool:
        """Remove the blob that was read; the one that has taken its place meanwhile is another."""
        with self._changed:
            if not path.exists() or not os.path.samestat(path.stat(), read):
                return False
            path.unlink()
            self._index.lose_blob(path.name)
        _log.error("the blob %s is corrupted on disk: removed", path.name)
        return True

    def _has(self, file: WantedFile) -> bool:
        path = self._blobs / file.sha256
        try:
            return path.stat().st_size == file.size
        except FileNotFoundError:
            return False

    def _expect_room(self, need: int, budget_bytes: int | None) -> None:
        free = self.free_bytes()
        if need > free:
            raise DiskFullError(f"needs {need} bytes, the disk has {free} to give")
        if budget_bytes is None:
            return
        left = max(0, budget_bytes - self._index.used_bytes - self._reserved)
        if need > left:
            raise DiskFullError(f"needs {need} bytes, {left} of the budget of {budget_bytes} are left")

    def _fill(self, folder: Path, files: tuple[WantedFile, ...], texts: Mapping[str, str]) -> None:
        changed = [self._link(file, folder / file.path) for file in files]
        changed += [_write_text(folder / name, text) for name, text in texts.items()]
        changed.append(_remove_strangers(folder, {*(file.path for file in files), *texts}))
        if any(changed):
            _sync_tree(folder)

    def _link(self, file: WantedFile, path: Path) -> bool:
        blob = self._blobs / file.sha256
        if path.is_file() and not path.is_symlink() and path.samefile(blob):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._partial / f"{file.sha256}.{uuid.uuid4().hex}"
        os.link(blob, temporary)
        temporary.replace(path)
        return True

    def _drop_unused(self, digests: Iterable[str]) -> None:
        for sha256 in digests:
            path = self._blobs / sha256
            # Not by the count of its links: somebody else may have made one.
            if not self._index.is_wanted(sha256):
                path.unlink(missing_ok=True)
                self._index.drop_blob(sha256)


def _write_text(path: Path, text: str) -> bool:
    data = text.encode()
    if path.is_file() and not path.is_symlink() and path.read_bytes() == data:
        return False
    write_durably(path, data)
    return True


def _is_sound(file: IO[bytes], sha256: str, after: Callable[[int], None]) -> bool:
    """Whether these are the digest's bytes; not so when the disk has lost some of them."""
    digest = hashlib.sha256()
    try:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            after(len(chunk))
    except OSError as error:
        if error.errno not in LOST:
            raise
        return False
    return digest.hexdigest() == sha256


def _remove_strangers(folder: Path, paths: set[str]) -> bool:
    removed = False
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
                removed = True
        elif path.relative_to(folder).as_posix() not in paths:
            path.unlink()
            removed = True
    return removed


def _sync_tree(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
