"""Checking a pulled folder with the keys this machine trusts, by the registry's own verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.errors import FolderRefused, SignatureRefused
from client.i18n import _
from client.pull import ATTESTATION_FILE, SIGNATURE_FILE
from client.refs import VersionRef
from registry.signing.errors import SigningError
from registry.signing.verify import TrustedKeys, verify_folder

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST_TEXT = 64 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    """What the signatures of a folder say it holds."""

    ref: str
    base_model: str
    base_revision: str
    rank: int
    root_digest: str
    engine_name: str
    approvals: tuple[dict[str, object], ...]


def verify_pulled(folder: Path, key_file: Path, *, expected: VersionRef | None = None) -> Verified:
    """Check files, signature and attestation of `folder`, and that it is `expected` if that is given.

    Raises:
        FolderRefused: a signature file is missing.
        SignatureRefused: something doesn't fit, or the key isn't trusted.

    """
    bundle, attestation = _text(folder, SIGNATURE_FILE), _text(folder, ATTESTATION_FILE)
    try:
        keys = TrustedKeys.from_pem(key_file.read_text(encoding="utf-8", errors="replace"))
        claims = verify_folder(folder, bundle, attestation, keys)
    except SigningError as error:
        raise SignatureRefused(
            _("{folder} isn't trustworthy: {reason}.").format(folder=folder, reason=error)
        ) from error
    ref = str(VersionRef(claims.tenant, claims.adapter, claims.version))
    if expected is not None and ref != str(expected):
        message = _("{folder} is signed as {found}, not as {expected}; it isn't the version you asked for.")
        raise SignatureRefused(message.format(folder=folder, found=ref, expected=expected))
    return Verified(
        ref=ref,
        base_model=claims.base_model,
        base_revision=claims.base_revision,
        rank=claims.rank,
        root_digest=claims.root_digest,
        engine_name=claims.engine_name,
        approvals=tuple(dict(approval) for approval in claims.approvals),
    )


def _text(folder: Path, name: str) -> str:
    path = folder / name
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST_TEXT)
    except OSError as error:
        message = _("{path} can't be read ({reason}); pull the version again.").format(path=path, reason=error.strerror)
        raise FolderRefused(str(path), message) from error
    return data.decode("utf-8", errors="replace")
