"""A large file to the store in parts, several at a time; what an earlier push has sent isn't sent again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from client.parallel import CancelSwitch, run_all
from client.storage import Storage, UrlExpired, read_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.manifest import LocalFile
    from client.progress import Progress
    from client.refs import VersionRef
    from client.resources.versions import Versions


# Number, first byte and size of a part.
Span = tuple[int, int, int]
# How many parts one thread sends for each time that it asks for addresses.
_GROUP = 4


@dataclass(frozen=True, slots=True)
class ArrivedPart:
    """A part of a large file that the store has, with the digest it was checked against."""

    number: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartAddress:
    """Where one part of a large file goes."""

    number: int
    url: str
    method: str = "PUT"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileInParts:
    """How far the upload of a large file is; every part but the last has `part_bytes`."""

    path: str
    size: int
    part_bytes: int
    stored: bool = False
    arrived: tuple[ArrivedPart, ...] = ()
    addresses: tuple[PartAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes `start` to `start` + `size` of a file, and their hex SHA-256."""

    number: int
    start: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartsSender:
    """Sends single files of one version in parts, `workers` at a time."""

    versions: Versions
    storage: Storage
    ref: VersionRef
    progress: Progress
    workers: int

    def send(self, source: LocalFile) -> int | None:
        """Have the whole file stored; return how many bytes had to be moved for it, or None if it was stored already.

        Raises:
            TransferFailed: the store refused a part.
            FolderRefused: the file changed on disk since it was hashed.
            UploadIncomplete, InvalidRequest: the store hasn't got what was declared; the same push again sends it.

        """
        path = source.declared.path
        self.progress.started("upload", path, source.declared.size)
        begun = self.versions.start_parts(self.ref, path, {})
        moved = None if begun.stored else self._send_missing(source, begun)
        self.progress.finished("upload", path)
        return moved

    def _send_missing(self, source: LocalFile, begun: FileInParts) -> int:
        spans = _spans(source.declared.size, begun.part_bytes)
        groups = [spans[first : first + _GROUP] for first in range(0, len(spans), _GROUP)]
        moved = run_all([partial(self._send_group, source, begun, group) for group in groups], workers=self.workers)
        self.versions.complete_parts(self.ref, source.declared.path)
        return sum(moved)

    def _send_group(self, source: LocalFile, begun: FileInParts, spans: Sequence[Span], cancel: CancelSwitch) -> int:
        """Send those of these parts that haven't arrived; return their bytes."""
        arrived = {(part.number, part.size, part.sha256) for part in begun.arrived}
        parts = [_hash(source, span, cancel) for span in spans]
        missing = [part for part in parts if (part.number, part.size, part.sha256) not in arrived]
        moved = sum(part.size for part in missing)
        self.progress.moved("upload", source.declared.path, sum(part.size for part in parts) - moved)
        addresses = self._addresses(source, missing) if missing else {}
        for part in missing:
            self._send_part(source, part, addresses[part.number], cancel)
        return moved

    def _send_part(self, source: LocalFile, part: Part, address: PartAddress, cancel: CancelSwitch) -> None:
        """Send one part; ask once for a fresh address if the first one expires on the way."""
        put = partial(
            self.storage.put_part, source, start=part.start, size=part.size, progress=self.progress, cancel=cancel
        )
        try:
            put(address)
        except UrlExpired:
            put(self._addresses(source, [part])[part.number])

    def _addresses(self, source: LocalFile, parts: Sequence[Part]) -> dict[int, PartAddress]:
        digests = {part.number: part.sha256 for part in parts}
        given = self.versions.start_parts(self.ref, source.declared.path, digests)
        return {address.number: address for address in given.addresses}


def _spans(size: int, part_bytes: int) -> list[Span]:
    starts = enumerate(range(0, size, part_bytes), start=1)
    return [(number, start, min(part_bytes, size - start)) for number, start in starts]


def _hash(source: LocalFile, span: Span, cancel: CancelSwitch) -> Part:
    number, start, size = span
    digest = hashlib.sha256()
    for chunk in read_span(source, start, size, cancel):
        digest.update(chunk)
    return Part(number=number, start=start, size=size, sha256=digest.hexdigest())
