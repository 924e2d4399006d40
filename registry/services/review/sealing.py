"""The two signatures that make a version what it is called: made outside of the transaction that approves it."""

from collections.abc import Iterable
from dataclasses import dataclass

from registry.actors import Actor
from registry.models import Signature, SigningKey, Version
from registry.quorum import Word
from registry.services.keys import publish_key, signer
from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.manifest import SignedFile
from registry.signing.ports import Signer


@dataclass(frozen=True, slots=True)
class Seal:
    """Signatures that were made for exactly ``claims``."""

    key: Signer
    claims: ReleaseClaims
    bundle: str
    attestation: str


def make_seal(version: Version, approvals: Iterable[Word]) -> Seal:
    """Sign the version's files and its release. May be slow: the key can be in another place."""
    key, files = signer(), signed_files(version)
    claims = release_claims(version, approval_claims(approvals))
    return Seal(key=key, claims=claims, bundle=sign_files(key, files), attestation=sign_release(key, claims, files))


def fits(seal: Seal, version: Version, approvals: Iterable[Word]) -> bool:
    """Whether the seal is for this version with these approvals, and its key still counts."""
    is_revoked = SigningKey.objects.filter(key_id=seal.key.key_id, revoked_at__isnull=False).exists()
    return not is_revoked and seal.claims == release_claims(version, approval_claims(approvals))


def keep_seal(*, actor: Actor, version: Version, seal: Seal) -> Signature:
    """Store the signatures. Runs in the transaction that approves."""
    return Signature.objects.create(
        version=version,
        key=publish_key(actor=actor, signer=seal.key),
        root_digest=version.root_digest,
        bundle=seal.bundle,
        attestation=seal.attestation,
    )


def approval_claims(approvals: Iterable[Word]) -> list[dict[str, object]]:
    """What the attestation says of each approval."""
    return [
        {
            "reviewer": word.person,
            "at": word.at.isoformat(timespec="seconds"),
            "comment": word.comment,
            **({"break_glass": True} if word.break_glass else {}),
        }
        for word in approvals
    ]


def signed_files(version: Version) -> list[SignedFile]:
    """The version's files as the signature covers them."""
    return [
        SignedFile(path=file.path, size=file.artifact.size, sha256=file.artifact.sha256)
        for file in version.files.select_related("artifact")
    ]


def release_claims(version: Version, approvals: Iterable[dict[str, object]]) -> ReleaseClaims:
    """What the release attestation binds to the files: the name, the base, and who approved."""
    return ReleaseClaims(
        tenant=version.adapter.tenant.name,
        adapter=version.adapter.name,
        version=version.name,
        base_model=version.base_revision.base_model.name,
        base_revision=version.base_revision.digest,
        rank=version.rank or 0,
        root_digest=version.root_digest,
        engine_name=version.engine_name,
        validation_digest=version.validation_digest,
        approvals=tuple(approvals),
    )
