"""Checking a pulled folder with the keys this machine trusts, and signing one as a pipeline, by the registry's code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.config import TRUSTED_KEYS_VARIABLE, trusted_keys_path
from client.errors import ConfigurationError, FolderRefused, SignatureRefused
from client.i18n import _
from client.pull import ATTESTATION_FILE, SIGNATURE_FILE
from client.refs import VersionRef
from registry.naming import NamingError
from registry.signing.bundle import sign_files
from registry.signing.dsse import signer_of
from registry.signing.errors import SigningError
from registry.signing.folder import list_folder, read_file
from registry.signing.local_key import LocalKeySigner
from registry.signing.trust_file import write_trust_file
from registry.signing.verify import TrustedKeys, verify_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LARGEST_TEXT = 64 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    """What the signatures of a folder say it holds, and who says so."""

    ref: str
    base_model: str
    base_revision: str
    rank: int
    root_digest: str
    engine_name: str
    approvals: tuple[dict[str, object], ...]
    key_id: str
    signed_at: str


def known_trusted_keys(environ: Mapping[str, str], given: Path | None) -> Path | None:
    """Return the file of trusted keys, the given one or the one this machine has; None if it trusts none yet.

    Raises:
        ConfigurationError: the environment names a file that isn't there.

    """
    path = given or trusted_keys_path(environ)
    if path.is_file():
        return path
    if environ.get(TRUSTED_KEYS_VARIABLE):
        message = _("{path} isn't there; {name} has to name a file with public keys.")
        raise ConfigurationError(message.format(path=path, name=TRUSTED_KEYS_VARIABLE))
    return None


def find_trusted_keys(environ: Mapping[str, str], given: Path | None) -> Path:
    """Return the file of trusted keys.

    Raises:
        ConfigurationError: there is none.

    """
    path = known_trusted_keys(environ, given)
    if path is None:
        raise ConfigurationError(
            _("No keys are trusted here yet; give them with --key, or save them with `lorekeeper key trust`.")
        )
    return path


def trust_keys(path: Path, text: str) -> None:
    """Write the file of trusted keys.

    Raises:
        SignatureRefused: the text holds no keys, or the file can't be written.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_trust_file(path, text)
    except SigningError as error:
        raise SignatureRefused(_("These keys can't be trusted: {reason}.").format(reason=error)) from error


def verify_pulled(folder: Path, key_file: Path, *, expected: VersionRef | None = None) -> Verified:
    """Check files, signature and attestation of `folder`, and that it is `expected` if that is given.

    Raises:
        FolderRefused: a signature file is missing.
        SignatureRefused: something doesn't fit, or the key isn't trusted.

    """
    bundle, attestation = (_signature_in(folder, name) for name in (SIGNATURE_FILE, ATTESTATION_FILE))
    try:
        keys = TrustedKeys.from_text(key_file.read_text(encoding="utf-8", errors="replace"))
        claims = verify_folder(folder, bundle, attestation, keys)
        key_id, signed_at = signer_of(attestation)
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
        key_id=key_id,
        signed_at=signed_at.isoformat() if signed_at else "",
    )


def sign_folder(folder: Path, private_key: Path, bundle: Path) -> str:
    """Write a model-signing bundle over the folder's files, as a pipeline does before it pushes; return the key's id.

    Raises:
        FolderRefused: the bundle would lie in the folder, or a file can't be in a version.
        SignatureRefused: the key can't sign.

    """
    if bundle.resolve().is_relative_to(folder.resolve()):
        raise FolderRefused(str(bundle), _("{path} would be part of what it signs.").format(path=bundle))
    try:
        signer = LocalKeySigner.from_pem_file(private_key)
        files = [read_file(folder, path, expected_size=size) for path, size in list_folder(folder).items()]
        text = sign_files(signer, files)
    except NamingError as error:
        raise FolderRefused(str(folder), str(error)) from error
    except SigningError as error:
        raise SignatureRefused(_("{folder} can't be signed: {reason}.").format(folder=folder, reason=error)) from error
    bundle.write_text(text, encoding="utf-8")
    return signer.key_id


def read_bundle(path: Path) -> str:
    """Return the text of a bundle.

    Raises:
        FolderRefused: it can't be read.

    """
    return _text(path, _("{path} can't be read ({reason})."))


def _signature_in(folder: Path, name: str) -> str:
    return _text(folder / name, _("{path} can't be read ({reason}); pull the version again."))


def _text(path: Path, message: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST_TEXT)
    except OSError as error:
        raise FolderRefused(str(path), message.format(path=path, reason=error.strerror)) from error
    return data.decode("utf-8", errors="replace")
