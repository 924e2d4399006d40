"""The files of a folder with size and digest, read once and streaming.

The refusals here are for a quick and clear message: the server decides what a version may hold.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from client.errors import FolderRefused
from client.i18n import _
from client.models import VersionFile
from client.progress import SilentProgress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.progress import Progress

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file on this disk and what it was when it was read: path inside the folder, size, hex SHA-256."""

    location: Path
    declared: VersionFile


def read_manifest(folder: Path, *, progress: Progress | None = None) -> tuple[LocalFile, ...]:
    """Hash every file below `folder` and return them sorted by path.

    Raises:
        FolderRefused: not a folder, empty, or holding a symlink, a hidden name or something that isn't a plain file.

    """
    if not folder.is_dir():
        raise FolderRefused(
            str(folder), _("{path} isn't a folder; give the folder with the adapter's files.").format(path=folder)
        )
    watcher = progress or SilentProgress()
    found = sorted(_walk(folder, folder), key=lambda pair: pair[0])
    if not found:
        raise FolderRefused(
            str(folder), _("{path} has no files; give the folder with the adapter's files.").format(path=folder)
        )
    return tuple(_hash(location, path, watcher) for path, location in found)


def open_plain(location: Path, path: str) -> BinaryIO:
    """Open a file for reading, refusing a symlink or device put in its place since it was listed."""
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        message = _("{path} can't be read: {reason}.").format(path=path, reason=error.strerror)
        raise FolderRefused(path, message) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FolderRefused(path, _("{path} isn't a plain file; remove it from the folder.").format(path=path))
    return os.fdopen(descriptor, "rb")


def _walk(root: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        message = _("{path} can't be read: {reason}.").format(path=folder, reason=error.strerror)
        raise FolderRefused(str(folder), message) from error
    for entry in entries:
        location = Path(entry.path)
        path = location.relative_to(root).as_posix()
        _check_entry(entry, path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, location)
        else:
            yield path, location


def _check_entry(entry: os.DirEntry[str], path: str) -> None:
    if entry.is_symlink():
        raise FolderRefused(path, _("{path} is a symlink; put the file itself in its place.").format(path=path))
    if entry.name.startswith("."):
        raise FolderRefused(path, _("{path} is hidden; remove it or push a clean folder.").format(path=path))
    if not entry.name.isprintable() or "\\" in entry.name:
        shown = ascii(path)
        raise FolderRefused(
            shown, _("{path} has characters that a file name can't have here; rename it.").format(path=shown)
        )
    if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
        raise FolderRefused(path, _("{path} isn't a plain file; remove it from the folder.").format(path=path))


def _hash(location: Path, path: str, progress: Progress) -> LocalFile:
    digest = hashlib.sha256()
    size = 0
    with open_plain(location, path) as stream:
        progress.started("hash", path, os.fstat(stream.fileno()).st_size)
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            progress.moved("hash", path, len(chunk))
    progress.finished("hash", path)
    return LocalFile(location=location, declared=VersionFile(path=path, size=size, sha256=digest.hexdigest()))
