"""What is in the disk cache, in memory: which version uses which blob, how large blobs are, who works with one now."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

# Stands for a file in a version's folder that is none of the blobs.
NO_BLOB: Final = "none"


@dataclass(frozen=True, slots=True)
class Kept:
    """One version on disk: when it was wanted or used last (unix seconds), and what its deletion would free."""

    name: str
    last_used: float
    own_bytes: int


@dataclass(slots=True)
class Index:
    """Follows the disk; the disk decides. The caller locks."""

    sizes: dict[str, int] = field(default_factory=dict)
    used_bytes: int = 0
    _blobs_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _last_used: dict[str, float] = field(default_factory=dict)
    _users: Counter[str] = field(default_factory=Counter)
    _pins: Counter[str] = field(default_factory=Counter)

    def add_blob(self, sha256: str, size: int) -> None:
        self.drop_blob(sha256)
        self.sizes[sha256] = size
        self.used_bytes += size

    def drop_blob(self, sha256: str) -> None:
        self.used_bytes -= self.sizes.pop(sha256, 0)

    def lose_blob(self, sha256: str) -> None:
        """The blob is not there any more: who uses it has a file of its own, maybe a wrong one, until placed again."""
        self.drop_blob(sha256)
        for name, blobs in list(self._blobs_of.items()):
            if sha256 in blobs:
                left = (NO_BLOB if each == sha256 else each for each in blobs)
                self.add_version(name, tuple(left), at=self._last_used[name])

    def add_version(self, name: str, blobs: Iterable[str], *, at: float) -> None:
        self.drop_version(name)
        self._blobs_of[name] = tuple(sorted(set(blobs)))
        self._users.update(self._blobs_of[name])
        self.touch(name, at=at)

    def drop_version(self, name: str) -> tuple[str, ...]:
        """Forget the version; the blobs that it had."""
        blobs = self._blobs_of.pop(name, ())
        self._last_used.pop(name, None)
        for sha256 in blobs:
            self._users[sha256] -= 1
            if not self._users[sha256]:
                del self._users[sha256]
        return blobs

    def touch(self, name: str, *, at: float) -> None:
        if name in self._blobs_of:
            self._last_used[name] = at

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._blobs_of))

    def has(self, name: str) -> bool:
        return name in self._blobs_of

    def incomplete(self) -> tuple[str, ...]:
        """Versions one of whose blobs was removed, or is not the file in its folder."""
        return tuple(name for name in self._blobs_of if not self.is_complete(name))

    def is_complete(self, name: str) -> bool:
        return all(each in self.sizes for each in self._blobs_of.get(name, ()))

    def kept(self) -> tuple[Kept, ...]:
        return tuple(Kept(name, self._last_used[name], self._own_bytes(name)) for name in self._blobs_of)

    def version_bytes(self) -> dict[str, int]:
        return {name: sum(self.sizes.get(sha256, 0) for sha256 in blobs) for name, blobs in self._blobs_of.items()}

    def pin(self, blobs: Iterable[str]) -> None:
        """Keep blobs that no version uses yet."""
        self._pins.update(blobs)

    def unpin(self, blobs: Iterable[str]) -> None:
        for sha256 in blobs:
            self._pins[sha256] -= 1
            if not self._pins[sha256]:
                del self._pins[sha256]

    def is_wanted(self, sha256: str) -> bool:
        """Whether a version uses the blob or somebody works with it."""
        return sha256 in self._pins or sha256 in self._users

    def _own_bytes(self, name: str) -> int:
        return sum(self.sizes.get(sha256, 0) for sha256 in self._blobs_of[name] if self._users[sha256] == 1)
