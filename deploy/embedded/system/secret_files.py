"""Secrets of the stack: made once, kept in files that only their owner can read."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def random_text(*, octets: int = 32) -> str:
    """Text of that many random bytes, safe in URLs, SQL and configuration files: letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(octets)


def write_secret(file: Path, text: str) -> None:
    """Put the text into the file in one step; it is never readable by others, not even for a moment."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE), "w") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    fresh.replace(file)


class SecretFolder:
    """A folder (0700) with one secret per file (0600)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(_PRIVATE_FOLDER)

    def path(self, name: str) -> Path:
        return self.folder / name

    def text(self, name: str, *, octets: int = 32) -> str:
        """The secret of this name; made, from so many random bytes, when it is asked for the first time."""
        file = self.path(name)
        if not file.exists():
            write_secret(file, random_text(octets=octets))
        return file.read_text().strip()
