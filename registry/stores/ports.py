"""The object store as the registry sees it: immutable objects whose key ends with the SHA-256 of their bytes."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
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
    """What lies under a key.

    Attributes:
        size: bytes.
        sha256: the digest (hex) that the store computed itself when it took the object in; None where it took it in
            parts and knows only the digest of each. Whoever wants to know has to read the object.
        tag: the store's own name for these bytes; other bytes under the same key have another.

    """

    key: str
    size: int
    sha256: str | None
    tag: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of an upload in parts that has arrived.

    Attributes:
        number: from 1.
        size: bytes.
        tag: the store's own name for these bytes.
        sha256: digest (hex); empty where the store checked it but doesn't tell it again.

    """

    number: int
    size: int
    tag: str
    sha256: str = ""


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
        """Read the object as a stream; it can seek, and takes in no more than is read.

        Raises:
            ObjectMissing: nothing lies there.

        """
        ...

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens if it isn't there."""
        ...

    def start_parts(self, key: str) -> str:
        """Begin an upload in parts and return its id. Nothing lies under `key` before `complete_parts`."""
        ...

    def presign_part(
        self, key: str, upload_id: str, *, number: int, size: int, sha256: str, expires_s: int
    ) -> PresignedPut:
        """A request that stores exactly `size` bytes of this digest as part `number` (from 1); it may be repeated."""
        ...

    def list_parts(self, key: str, upload_id: str) -> tuple[StoredPart, ...]:
        """The parts that have arrived, by number.

        Raises:
            ObjectMissing: there is no such upload: it was completed, aborted or never begun.

        """
        ...

    def complete_parts(self, key: str, upload_id: str, parts: Sequence[StoredPart]) -> None:
        """Put the object together from `parts`: all of them, by number, as `list_parts` gave them, with their digests.

        Never overwrites: if there is an object already, it stays, as do the parts, and this returns quietly.

        Raises:
            StoreDigestMismatch: the parts have other digests, or make another one than `key` has; nothing was kept
                under `key`. A store that can't tell the latter leaves it to its caller: see `StoredObject.sha256`.
            ObjectMissing: there is no such upload, and no object either.

        """
        ...

    def abort_parts(self, key: str, upload_id: str) -> None:
        """Forget the upload and its parts; nothing happens if it isn't there."""
        ...

    def remove_abandoned(self, *, before: datetime) -> int:
        """Remove what killed uploads left behind that began before `before`; returns how many they were.

        These are uploads in parts that were neither completed nor aborted, and puts that broke off in the middle.
        """
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
