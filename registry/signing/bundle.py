"""The two signatures of a version.

`model.sig` (OpenSSF Model Signing v1.0) binds the bytes and names of the files. It says nothing of whose adapter they
are, so `release.intoto.json` binds the same list to tenant, adapter, version and base: together they stop another
adapter that is signed just as validly from being put in its place.

The model-signing digest covers the files' bytes in order but not their names, so the attestation repeats the list.

Anybody can check `model.sig` with the public tool (`pip install model-signing pyOpenSSL`)::

    python -m model_signing verify key FOLDER --signature FOLDER/model.sig --public_key public.pem --no-ignore-git-paths

Without the last option the tool tolerates added `.git*` files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from registry.naming import ATTESTATION_FILE, BUNDLE_FILE, check_digest, check_manifest_paths
from registry.signing.dsse import seal_statement
from registry.signing.errors import NameMismatch
from registry.signing.manifest import SignedFile, in_signed_order, root_digest
from registry.signing.ports import Signer

FILES_PREDICATE = "https://model_signing/signature/v1.0"
RELEASE_PREDICATE = "https://lorekeeper.dev/attestations/release/v1"
# The public verifier leaves out what the signed statement itself lists here, so users need no option for it.
UNSIGNED_FILES = (BUNDLE_FILE, ATTESTATION_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseClaims:
    """What an approved version is.

    Attributes:
        base_revision: digest of the base model revision (hex), not its label.
        rank: LoRA rank, read from the tensors.
        root_digest: the files' model-signing digest (hex).
        validation_digest: digest of the validation report (hex).
        approvals: JSON objects, one for each approval.

    """

    tenant: str
    adapter: str
    version: str
    base_model: str
    base_revision: str
    rank: int
    root_digest: str
    engine_name: str
    validation_digest: str
    approvals: tuple[Mapping[str, object], ...]


def sign_files(signer: Signer, files: Iterable[SignedFile], *, now: datetime | None = None) -> str:
    """Return the text of `model.sig` for exactly these files, signed at `now` (default: the present).

    Raises:
        NamingError: a path or digest that may not be in a version.

    """
    listed = _checked(files)
    predicate = {
        "serialization": {
            "method": "files",
            "hash_type": "sha256",
            "allow_symlinks": False,
            "ignore_paths": list(UNSIGNED_FILES),
        },
        "resources": [{"name": file.path, "algorithm": "sha256", "digest": file.sha256} for file in listed],
        # Verifiers of v1.0 ignore further fields; ours refuses a file by its size before reading it.
        "sizes": {file.path: file.size for file in listed},
    }
    return seal_statement(
        signer,
        predicate_type=FILES_PREDICATE,
        subject="adapter",
        digest=root_digest(listed),
        predicate=predicate,
        now=now,
    )


def sign_release(
    signer: Signer, release: ReleaseClaims, files: Iterable[SignedFile], *, now: datetime | None = None
) -> str:
    """Return the text of `release.intoto.json`: `release` is about exactly these files, signed at `now`.

    Raises:
        NameMismatch: `release.root_digest` is not the digest of `files`.
        NamingError: a path or digest that may not be in a version.

    """
    listed = _checked(files)
    digest = root_digest(listed)
    if digest != release.root_digest:
        raise NameMismatch("root_digest", expected=digest, found=release.root_digest)
    predicate = {
        "tenant": release.tenant,
        "adapter": release.adapter,
        "version": release.version,
        "base_model": release.base_model,
        "base_revision": release.base_revision,
        "rank": release.rank,
        "engine_name": release.engine_name,
        "validation_digest": release.validation_digest,
        "approvals": [dict(approval) for approval in release.approvals],
        "files": [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in listed],
    }
    subject = f"{release.tenant}/{release.adapter}@{release.version}"
    return seal_statement(
        signer, predicate_type=RELEASE_PREDICATE, subject=subject, digest=digest, predicate=predicate, now=now
    )


def _checked(files: Iterable[SignedFile]) -> tuple[SignedFile, ...]:
    listed = in_signed_order(files)
    check_manifest_paths(file.path for file in listed)
    for file in listed:
        check_digest(file.sha256, field=file.path)
    return listed
