"""Reading a folder of a version as its signatures describe it: regular files only, hashed as they stream by."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from registry.signing.errors import MissingFile, UnsafeFile
from registry.signing.manifest import SignedFile

_CHUNK_BYTES = 1 << 20
# Never follow a link that was put in place after the folder was listed, nor wait for a pipe's writer.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def list_folder(folder: Path) -> dict[str, int]:
    """Map each file's path (relative, segments separated by `/`) to its size in bytes; nothing is read.

    Raises:
        UnsafeFile: something is neither a regular file nor a folder. MissingFile: the folder itself is not there.

    """
    return dict(_walk(folder, prefix=""))


def read_file(folder: Path, path: str, *, expected_size: int | None = None) -> SignedFile:
    """Hash one file in constant memory.

    Raises:
        MissingFile: it is not there.
        UnsafeFile: it is not a regular file, or its size changes while it is read.

    """
    digest = hashlib.sha256()
    length = 0
    try:
        descriptor = os.open(folder / path, _OPEN_FLAGS)
    except FileNotFoundError as error:
        raise MissingFile(path) from error
    except OSError as error:
        raise UnsafeFile(path) from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        size = status.st_size if expected_size is None else expected_size
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeFile(path)
        while length <= size and (chunk := file.read(_CHUNK_BYTES)):
            digest.update(chunk)
            length += len(chunk)
    if length != size:
        raise UnsafeFile(path)
    return SignedFile(path=path, size=length, sha256=digest.hexdigest())


def _walk(folder: Path, *, prefix: str) -> Iterator[tuple[str, int]]:
    try:
        with os.scandir(folder / prefix) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise MissingFile(prefix or str(folder)) from error
    for entry in entries:
        path = f"{prefix}{entry.name}"
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(folder, prefix=f"{path}/")
        elif stat.S_ISREG(status.st_mode):
            yield path, status.st_size
        else:
            raise UnsafeFile(path)
