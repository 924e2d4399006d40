"""What a long transfer tells whoever watches it."""

from __future__ import annotations

from typing import Literal, Protocol

Action = Literal["hash", "upload", "download"]


class Progress(Protocol):
    """Called from several threads at once; a second `started` for a path begins it anew."""

    def started(self, action: Action, path: str, size: int) -> None:
        """Begin a file of `size` bytes."""

    def moved(self, action: Action, path: str, count: int) -> None:
        """Count `count` more bytes of it."""

    def finished(self, action: Action, path: str) -> None:
        """End it: moved completely, or found to be there already."""


class SilentProgress:
    """Watches nothing."""

    def started(self, action: Action, path: str, size: int) -> None:
        """Ignore it."""

    def moved(self, action: Action, path: str, count: int) -> None:
        """Ignore it."""

    def finished(self, action: Action, path: str) -> None:
        """Ignore it."""
