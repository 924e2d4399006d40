"""Pull a version into a folder: all of it, checked, or nothing."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from client.errors import FolderRefused, UnexpectedAnswer
from client.i18n import _
from client.parallel import CancelSwitch, run_all
from client.progress import SilentProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.models import Signature, Version, VersionFile
    from client.progress import Progress
    from client.refs import VersionRef
    from client.resources.versions import Versions
    from client.storage import Storage

SIGNATURE_FILE = "model.sig"
ATTESTATION_FILE = "release.intoto.json"
DEFAULT_WORKERS = 4
_FOLDER_MODE = 0o755
_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class PullResult:
    """The version that now lies in `folder`, and how many bytes were moved."""

    version: Version
    folder: Path
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class Puller:
    """Runs pulls over one connection."""

    versions: Versions
    storage: Storage
    progress: Progress = field(default_factory=SilentProgress)
    workers: int = DEFAULT_WORKERS

    def pull(
        self, ref: VersionRef, folder: Path, *, check: Callable[[Path, Signature], object] | None = None
    ) -> PullResult:
        """Write all files, `model.sig` and `release.intoto.json` to `folder`, which must be new or empty.

        Digests are checked while streaming; `check` sees the complete folder before it gets its name.

        Raises:
            FolderRefused: the target exists and isn't empty.
            NotFound, Conflict: no such version, or it isn't signed.
            DigestMismatch, TransferFailed: a file arrived broken; nothing is left behind.

        """
        _check_target(folder)
        version = self.versions.get(ref)
        for file in version.files:
            check_path(file.path)
        signature = self.versions.signature(ref)
        with _folder_that_appears_whole(folder) as partial_folder:
            jobs = [partial(self._fetch, ref, partial_folder, file) for file in version.files]
            run_all(jobs, workers=self.workers)
            (partial_folder / SIGNATURE_FILE).write_text(signature.bundle, encoding="utf-8")
            (partial_folder / ATTESTATION_FILE).write_text(signature.attestation, encoding="utf-8")
            if check is not None:
                check(partial_folder, signature)
        return PullResult(version=version, folder=folder, moved_bytes=sum(file.size for file in version.files))

    def _fetch(self, ref: VersionRef, folder: Path, file: VersionFile, cancel: CancelSwitch) -> None:
        cancel.check()
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        url = self.versions.file_url(ref, file.path)
        self.storage.get(url, target, file, progress=self.progress, cancel=cancel)


def check_path(path: str) -> None:
    """Refuse a path from the server that would leave the folder, hide in it, or replace a signature.

    Raises:
        UnexpectedAnswer: the path isn't a plain relative one.

    """
    parts = path.split("/")
    plain = all(part and not part.startswith(".") and part.isprintable() and "\\" not in part for part in parts)
    if not plain or PurePosixPath(path).is_absolute() or path in {SIGNATURE_FILE, ATTESTATION_FILE}:
        message = _("The server names a file {path} that can't be written safely; nothing was pulled.")
        raise UnexpectedAnswer(message.format(path=ascii(path)))


def _check_target(folder: Path) -> None:
    taken = os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()))
    if taken:
        raise _target_taken(folder)


def _target_taken(folder: Path) -> FolderRefused:
    message = _("{path} exists and isn't an empty folder; give a new one.").format(path=folder)
    return FolderRefused(str(folder), message)


@contextmanager
def _folder_that_appears_whole(folder: Path) -> Iterator[Path]:
    """Give a hidden folder beside the target; rename it at the end, or remove it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        yield hidden
        hidden.chmod(_FOLDER_MODE)
        try:
            hidden.rename(folder)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            raise _target_taken(folder) from error
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
