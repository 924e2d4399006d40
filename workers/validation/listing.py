"""What lies in a folder that nobody trusts: links and devices are named, never followed or opened."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workers.validation.limits import Limits


@dataclass(slots=True)
class Listing:
    """Paths are relative, with '/'. `files` maps regular files to their size in bytes."""

    files: dict[str, int] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    specials: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    folders: int = 0
    is_cut: bool = False

    @property
    def entries(self) -> int:
        return len(self.files) + len(self.links) + len(self.specials) + self.folders


def list_folder(folder: Path, limits: Limits) -> Listing:
    """List `folder` and what is below it, up to `limits.max_files` entries and `limits.max_depth` levels.

    Raises:
        NotADirectoryError: `folder` is not a folder, or a link to one.

    """
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    listing = Listing()
    _walk(folder, "", listing, limits)
    return listing


def _walk(folder: Path, prefix: str, listing: Listing, limits: Limits) -> None:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for _, entry in zip(range(limits.max_files + 1), entries, strict=False))
    except OSError:
        listing.unreadable.append(prefix.rstrip("/"))
        return
    for name in names:
        if listing.entries >= limits.max_files:
            listing.is_cut = True
            return
        _enter(folder / name, f"{prefix}{name}", listing, limits)


def _enter(path: Path, shown_path: str, listing: Listing, limits: Limits) -> None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        listing.links.append(shown_path)
    elif stat.S_ISREG(status.st_mode):
        listing.files[shown_path] = status.st_size
    elif not stat.S_ISDIR(status.st_mode):
        listing.specials.append(shown_path)
    elif shown_path.count("/") + 1 >= limits.max_depth:
        listing.is_cut = True
    else:
        listing.folders += 1
        _walk(path, f"{shown_path}/", listing, limits)


@contextmanager
def opened(folder: Path, path: str) -> Iterator[int]:
    """Open the regular file `path` below `folder` for reading; gives its descriptor.

    Raises:
        OSError: it is gone, became a link or is no regular file any more.

    """
    descriptor = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_small(folder: Path, path: str, limit: int) -> bytes:
    """The bytes of a regular file, at most `limit` of them.

    Raises:
        OSError: see `opened`.

    """
    with opened(folder, path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(limit)
