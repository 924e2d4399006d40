"""The object store as the registry sees it: immutable objects whose key ends with the SHA-256 of their bytes."""

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from registry.stores.errors import BadKey

_KEY = re.compile(r"artifacts/[a-z0-9][a-z0-9-]{0,62}/([0-9a-f]{2})/(\1[0-9a-f]{62})", re.ASCII)


@dataclass(frozen=True, slots=True)
class PresignedPut:
    """A request that anybody who has it may make once: `method` on `url` with exactly these `headers`.

    The answer is 2xx when stored and 412 when the object is there already, which is as good: the key is its digest.
    Any other answer means that nothing was stored.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "PUT"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What lies under a key: `size` in bytes, and the SHA-256 (hex) that the store computed when it took it in."""

    key: str
    size: int
    sha256: str


class ArtifactStore(Protocol):
    """Every method may raise `StoreUnavailable` (retryable), `StoreRefused`, and `BadKey` for a key of another form."""

    def ensure_ready(self) -> None:
        """Make the bucket or folder if it isn't there. Idempotent."""
        ...

    def presign_put(self, key: str, *, size: int, sha256: str, expires_s: int) -> PresignedPut:
        """A request that stores exactly `size` bytes of this digest under `key`, and never overwrites."""
        ...

    def presign_get(self, key: str, *, expires_s: int) -> str:
        """A URL that reads the object for `expires_s` seconds."""
        ...

    def stat(self, key: str) -> StoredObject | None:
        """What lies under `key`, or None."""
        ...

    def put_stream(self, key: str, stream: BinaryIO, *, size: int, sha256: str) -> None:
        """Store what `stream` holds. Does nothing, and reads nothing, if the object is there already.

        Raises:
            StoreDigestMismatch, StoreSizeMismatch: the stream holds something else; nothing was kept.

        """
        ...

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Read the object as a stream.

        Raises:
            ObjectMissing: nothing lies there.

        """
        ...

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens if it isn't there."""
        ...


def digest_in(key: str) -> str:
    """The SHA-256 that a key ends with; raises `BadKey` if it isn't a key of an artifact."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise BadKey(f"{key!a} is not the key of an artifact", field="key")
    return match.group(2)


def check_key(key: str, *, sha256: str) -> None:
    """Raise `BadKey` unless `key` is the key of an artifact with this digest."""
    if digest_in(key) != sha256:
        raise BadKey(f"{key!a} is not the key of the digest {sha256!a}", field="key")
