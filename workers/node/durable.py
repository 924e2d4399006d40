"""Files that survive a SIGKILL and a power cut: whole or not there, never torn."""

import errno
import json
import os
from pathlib import Path
from typing import Any

# What a disk says that has no room, or none for this user.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# What a disk says of bytes that it has lost: reading them again gives them no better.
LOST = frozenset({errno.EIO, errno.EBADMSG, errno.EUCLEAN})


def open_folder(folder: Path) -> None:
    """Make the folder for notes, and clear what a killed process was about to write there; nobody else may be."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the folder's entries (new, renamed and removed names) durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the file's bytes durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes) -> None:
    """Write `path` as a whole: a reader and a crash see the old bytes or the new ones.

    A SIGKILL after it leaves the new ones; a power cut soon after it may bring back the old ones, or none.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    sync_file(temporary)
    temporary.replace(path)


def write_durably(path: Path, data: bytes) -> None:
    """As `write_whole`; a power cut after it leaves the new bytes too."""
    write_whole(path, data)
    sync_folder(path.parent)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object as a whole."""
    write_durably(path, json.dumps(value, sort_keys=True).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object at `path`, None when there is none.

    Raises:
        ValueError: the file holds something else, or can't be read: somebody else wrote it, or the disk is damaged.

    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in LOST:
            raise
        raise ValueError(f"the disk has lost {path}: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} does not hold a JSON object")  # noqa: TRY004  # a wrong content, not a wrong argument
    return value


def remove(path: Path) -> None:
    """Remove a file durably; none there is success."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)
