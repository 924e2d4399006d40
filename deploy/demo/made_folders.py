"""Folders that are made once from known inputs, whole or not at all.

A made folder has a stamp file beside it, `<folder>.stamp`, with the SHA-256 of everything it was made from. The folder
is current while its stamp equals the hash of today's inputs; otherwise it is made anew in a temporary sibling and put
in place by a rename, so that an interrupted run never leaves half a folder under the final name.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def hash_of(*inputs: str | bytes) -> str:
    """Return the SHA-256 (hex) of the inputs, each with its length before it, so that no two lists collide."""
    digest = hashlib.sha256()
    for item in inputs:
        data = item.encode() if isinstance(item, str) else item
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def stamp_path(folder: Path) -> Path:
    """Return the path of the stamp that belongs to a made folder."""
    return folder.with_name(folder.name + ".stamp")


def is_current(folder: Path, inputs_hash: str) -> bool:
    """Tell whether the folder exists and was made from exactly these inputs."""
    stamp = stamp_path(folder)
    return folder.is_dir() and stamp.is_file() and stamp.read_text(encoding="ascii").strip() == inputs_hash


def make_once(folder: Path, inputs_hash: str, make: Callable[[Path], None]) -> bool:
    """Fill `folder` by `make(empty temporary folder)` unless it is current; return whether it was made now.

    Whatever `make` raises passes through, and then nothing is left behind but the older folder, if there was one.
    """
    if is_current(folder, inputs_hash):
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        make(building)
        building.chmod(0o755)
        stamp_path(folder).unlink(missing_ok=True)
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    stamp_path(folder).write_text(inputs_hash + "\n", encoding="ascii")
    return True
