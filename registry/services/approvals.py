"""Four eyes: somebody other than the uploader approves a digest, and with that the version is signed."""

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import dispatch, events
from registry.actors import Actor
from registry.errors import DigestChanged, PermissionDenied, SelfApproval, WrongState
from registry.models import Approval, Signature, Version
from registry.permissions import Action, require_in_tenant
from registry.selectors import versions_with_relations
from registry.services.keys import publish_key, signer
from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.manifest import SignedFile
from registry.states import Decision, VersionState
from registry.transitions import move_version


def approve_version(*, actor: Actor, version: Version, digest: str, comment: str = "") -> Version:
    """Approve the bytes named by ``digest`` and sign them. Quiet when this reviewer has approved them already.

    Raises:
        SelfApproval: the actor uploaded the version.
        DigestChanged: ``digest`` is not this version's.
        WrongState: the version is not a candidate.

    """
    reviewer_id = _reviewer(actor, version, digest)
    if _decided_by(version, reviewer_id, VersionState.APPROVED, Decision.APPROVED):
        return version
    _require_candidate(version)
    key = signer()
    approval = {"reviewer": actor.id, "at": timezone.now().isoformat(timespec="seconds"), "comment": comment}
    files = signed_files(version)
    bundle = sign_files(key, files)
    attestation = sign_release(key, release_claims(version, [approval]), files)
    with transaction.atomic():
        locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
        if _decided_by(locked, reviewer_id, VersionState.APPROVED, Decision.APPROVED):
            return locked
        _require_candidate(locked)
        _write_approval(locked, reviewer_id, Decision.APPROVED, comment)
        Signature.objects.create(
            version=locked,
            key=publish_key(actor=actor, signer=key),
            root_digest=locked.root_digest,
            bundle=bundle,
            attestation=attestation,
        )
        move_version(locked, was=VersionState.CANDIDATE, to=VersionState.APPROVED)
        events.version_moved(
            actor=actor,
            version=locked,
            action="approve",
            was=VersionState.CANDIDATE,
            to=VersionState.APPROVED,
            reason=comment,
            facts={"root_digest": locked.root_digest, "key": key.key_id},
        )
    return locked


@transaction.atomic
def decline_version(*, actor: Actor, version: Version, reason: str) -> Version:
    """Refuse a candidate for good. Quiet when this reviewer has refused it already.

    The uploader may not even decline: that would be deciding, too.
    """
    reviewer_id = _reviewer(actor, version, version.root_digest)
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    if _decided_by(locked, reviewer_id, VersionState.REJECTED, Decision.DECLINED):
        return locked
    _require_candidate(locked)
    _write_approval(locked, reviewer_id, Decision.DECLINED, reason)
    move_version(locked, was=VersionState.CANDIDATE, to=VersionState.REJECTED, message=reason)
    events.version_moved(
        actor=actor,
        version=locked,
        action="decline",
        was=VersionState.CANDIDATE,
        to=VersionState.REJECTED,
        reason=reason,
    )
    dispatch.nudge(dispatch.PURGE_VERSION, version_id=str(locked.pk))
    return locked


def signed_files(version: Version) -> list[SignedFile]:
    """The version's files as the signature covers them."""
    return [
        SignedFile(path=file.path, size=file.artifact.size, sha256=file.artifact.sha256)
        for file in version.files.select_related("artifact")
    ]


def release_claims(version: Version, approvals: Iterable[dict[str, str]]) -> ReleaseClaims:
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


def _reviewer(actor: Actor, version: Version, digest: str) -> int:
    require_in_tenant(actor, Action.APPROVE_VERSION, version.adapter.tenant_id)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person approves."))
    if actor.person_id == version.uploader_id:
        raise SelfApproval(_("You uploaded this version: somebody else has to approve it."))
    if digest != version.root_digest:
        raise DigestChanged(
            _("The digest you approve is not this version's. Look at the version again."), field="digest"
        )
    return actor.person_id


def _decided_by(version: Version, reviewer_id: int, state: VersionState, decision: Decision) -> bool:
    return (
        version.state == state and version.approvals.filter(reviewer_id=reviewer_id, decision=decision.value).exists()
    )


def _require_candidate(version: Version) -> None:
    if version.state != VersionState.CANDIDATE:
        raise WrongState(
            _("%(version)s is %(state)s; only a candidate can be decided on.")
            % {"version": version, "state": version.state}
        )


def _write_approval(version: Version, reviewer_id: int, decision: Decision, comment: str) -> None:
    Approval.objects.create(
        version=version,
        reviewer_id=reviewer_id,
        decision=decision.value,
        root_digest=version.root_digest,
        validation_digest=version.validation_digest,
        comment=comment,
    )
