"""Names as the Hugging Face Hub has them: repository ids, commit ids, branches, and the base model of a config.

Pure: no Django, no I/O.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from registry.errors import InvalidInput
from registry.naming import check_name, check_version_name

MAIN: Final = "main"
# The commit of a draft that nothing was pushed to yet.
EMPTY_COMMIT: Final = "0" * 40

_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ID_DIGITS: Final = 32
_UNSUITABLE: Final = re.compile(r"[^a-z0-9]+")
# What trainers write beside an adapter and nobody needs who serves it. Clients are told to leave it out.
_LEFT_OUT: Final = re.compile(
    r"(?:.*/)?(?:\.gitattributes|\.gitignore|training_args\.bin|optimizer\.(?:bin|pt)|scheduler\.pt|scaler\.pt"
    r"|rng_state(?:_\d+)?\.pth|events\.out\.tfevents\..*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RepoName:
    """``adapter``, or ``adapter.version``: an adapter's name has no dot, so the first one ends it."""

    adapter: str
    version: str | None


def parse_repo_name(text: str) -> RepoName:
    """The second half of a repository id. Raises ``InvalidInput`` for what names no adapter."""
    adapter, dot, version = text.partition(".")
    check_name(adapter, field="name")
    return RepoName(adapter=adapter, version=check_version_name(version, field="name") if dot else None)


def commit_id(identity: UUID, digest: str) -> str:
    """The 40 hex digits that clients take for a git commit: an id, and the beginning of the content's digest."""
    return identity.hex + digest[: len(EMPTY_COMMIT) - _ID_DIGITS]


def is_commit_id(text: str) -> bool:
    return _COMMIT_ID.fullmatch(text) is not None


def identity_in(commit: str) -> UUID:
    """The id in a commit id; for text of another form the nil UUID, which names nothing."""
    return UUID(hex=commit[:_ID_DIGITS] if is_commit_id(commit) else EMPTY_COMMIT[:_ID_DIGITS])


def check_branch(name: str) -> str:
    """Return ``name`` if a draft may have it. Raises ``InvalidInput``."""
    if is_commit_id(name):
        raise InvalidInput(f"branch: {name} looks like a commit", field="branch")
    return check_version_name(name, field="branch")


def is_left_out(path: str) -> bool:
    """Whether a pushing client is told to skip this file, as a .gitignore would."""
    return _LEFT_OUT.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Pointer:
    """The git-lfs pointer of a file: its own git object id (SHA-1 in hex) and its size in bytes."""

    oid: str
    size: int


def lfs_pointer(*, sha256: str, size: int) -> Pointer:
    """What git would keep in place of the file: its text follows from digest and size alone."""
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
    blob = b"blob %d\0%b" % (len(text), text)
    return Pointer(oid=hashlib.sha1(blob, usedforsecurity=False).hexdigest(), size=len(text))


def base_model_names(recorded: str) -> tuple[str, ...]:
    """What a base may be registered as that a config calls ``recorded``: a hub id, a bare name or a local path.

    The most exact name comes first.

    >>> base_model_names("HuggingFaceTB/SmolLM2-135M-Instruct")
    ('huggingfacetb-smollm2-135m-instruct', 'smollm2-135m-instruct')
    """
    parts = [part for part in re.split(r"[/\\]", recorded) if part]
    names = ["-".join(parts[-count:]) for count in (2, 1) if count <= len(parts)]
    return tuple(_UNSUITABLE.sub("-", name.lower()).strip("-") for name in names)
