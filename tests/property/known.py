"""What the machine of versions and aliases remembers of them, and how it reads the rows."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from registry.models import Version, VersionFile
from registry.signing.manifest import SignedFile
from registry.states import VersionState
from releases.states import MoveKind

CONFIGS = (b'{"r": 4}', b'{"r": 8}')
WEIGHTS = (b"weights one", b"weights two", b"weights three")
CONTENTS = [
    {"adapter_config.json": config, "adapter_model.safetensors": weights} for weights in WEIGHTS for config in CONFIGS
]


@dataclass(eq=False)
class Known:
    """What the model remembers of a version."""

    pk: Any
    adapter: int
    name: str
    uploader: int
    contents: dict[str, bytes]
    identity: tuple[Any, ...]
    state: VersionState = VersionState.UPLOADING
    validated_as: tuple[Any, ...] | None = None
    aged: bool = False
    purged: bool = False
    approver: int | None = None

    def digests(self) -> set[str]:
        return {sha256(data) for data in self.contents.values()}


@dataclass(eq=False)
class Stand:
    """One revision of an alias; ``before`` is the revision that it would be rolled back to, if that is still good."""

    version: Known
    kind: MoveKind
    before: "Stand | None"


@dataclass(eq=False)
class KnownAlias:
    """``now`` is what stands, ``rows`` is everything that ever happened."""

    pk: Any
    now: Stand
    rows: list[Stand] = field(default_factory=list)

    def target(self) -> Stand | None:
        """Walk back over what stood before; other versions than the one that serves, and none that is revoked."""
        stand = self.now.before
        while stand and (stand.version is self.now.version or stand.version.state is VersionState.REVOKED):
            stand = stand.before
        return stand


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(files: dict[str, bytes]) -> list[SignedFile]:
    return [SignedFile(path, len(data), sha256(data)) for path, data in files.items()]


def identity_of(version: Version, files: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """All that may never change; ``files`` are (path, sha256, size)."""
    return (
        version.adapter_id,
        version.name,
        version.base_revision_id,
        version.uploader_id,
        version.root_digest,
        version.engine_name,
        json.dumps(version.lineage),
        version.created_at,
        tuple(sorted(files)),
    )


def files_of(*versions: Version) -> dict[Any, list[tuple[Any, ...]]]:
    found = VersionFile.objects.filter(version__in=versions)
    files: dict[Any, list[tuple[Any, ...]]] = {version.pk: [] for version in versions}
    for pk, *file in found.values_list("version_id", "path", "artifact__sha256", "artifact__size"):
        files[pk].append(tuple(file))
    return files
