"""The files of one revision, whether of a version or of a draft."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from registry.hub.names import EMPTY_COMMIT, commit_id
from registry.models import Artifact, HubCommit, Version
from registry.signing.manifest import SignedFile


@dataclass(frozen=True, slots=True)
class Tree:
    """What a revision is.

    Attributes:
        commit: 40 hex digits that stand for these files for ever.
        files: sorted by path.
        title: what was said of it.
        at: when it was made; None for an empty draft.
        author: e-mail of who made it.

    """

    commit: str
    files: tuple[SignedFile, ...]
    title: str
    at: datetime | None
    author: str

    def file(self, path: str) -> SignedFile | None:
        return next((file for file in self.files if file.path == path), None)


def empty_tree(*, author: str) -> Tree:
    """A draft that nothing was pushed to yet."""
    return Tree(commit=EMPTY_COMMIT, files=(), title="", at=None, author=author)


def version_commit(version: Version) -> str:
    return commit_id(version.pk, version.root_digest)


def draft_commit(commit: HubCommit) -> str:
    return commit_id(commit.pk, commit.tree_digest)


def version_tree(version: Version) -> Tree:
    return Tree(
        commit=version_commit(version),
        files=_files((file.path, file.artifact) for file in version.files.select_related("artifact")),
        title=str(version),
        at=version.created_at,
        author=version.uploader.email,
    )


def draft_tree(commit: HubCommit) -> Tree:
    return Tree(
        commit=draft_commit(commit),
        files=_files((file.path, file.artifact) for file in commit.files.select_related("artifact")),
        title=commit.title,
        at=commit.sealed_at,
        author=commit.draft.owner.email,
    )


def tree_digest(digests: dict[str, str]) -> str:
    """SHA-256 in hex over paths and digests (by path): trees that have it in common are the same."""
    lines = "".join(f"{digests[path]} {path}\n" for path in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


def _files(rows: Iterable[tuple[str, Artifact]]) -> tuple[SignedFile, ...]:
    files = (SignedFile(path=path, size=artifact.size, sha256=artifact.sha256) for path, artifact in rows)
    return tuple(sorted(files, key=lambda file: file.path))
