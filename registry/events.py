"""One function per audit event of the registry. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change.
"""

import hashlib
from datetime import datetime
from typing import Any

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record
from registry.models import (
    Adapter,
    ApiToken,
    Approval,
    BaseModelRevision,
    EvaluationSet,
    HubDraft,
    Membership,
    Person,
    PipelineKey,
    PipelineSignature,
    Signature,
    SigningKey,
    Tenant,
    Version,
    VersionComment,
)
from registry.states import VersionState


def tenant_created(*, actor: Actor, tenant: Tenant) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:tenant:create",
        object_=_object("tenant", tenant.pk, tenant.name),
        after={"name": tenant.name, "title": tenant.title},
    )


def platform_admin_made(*, actor: Actor, person: Person) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:admin:make",
        object_=_object("person", person.pk, person.email),
        before={"is_platform_admin": False},
        after={"is_platform_admin": True},
    )


def member_added(*, actor: Actor, membership: Membership) -> None:
    append_record(
        actor=actor,
        chain=membership.tenant.name,
        action="tenant:member:add",
        object_=_object("person", membership.person.pk, membership.person.email),
        after={"role": membership.role},
    )


def member_removed(*, actor: Actor, tenant: Tenant, email: str, role: str) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:member:remove",
        object_=_object("person", email, email),
        before={"role": role},
    )


def token_created(*, actor: Actor, token: ApiToken) -> None:
    append_record(
        actor=actor,
        chain=chain_of_token(token),
        action="tenant:token:create",
        object_=_object("token", token.prefix, token.name),
        after={
            "kind": token.kind,
            "scopes": sorted(token.scopes),
            "person": token.person.email if token.person else None,
            "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        },
    )


def token_revoked(*, actor: Actor, token: ApiToken) -> None:
    append_record(
        actor=actor,
        chain=chain_of_token(token),
        action="tenant:token:revoke",
        object_=_object("token", token.prefix, token.name),
        before={"scopes": sorted(token.scopes)},
    )


def base_revision_registered(*, actor: Actor, revision: BaseModelRevision) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:base_revision:register",
        object_=_object("base_revision", revision.pk, str(revision)),
        after={"digest": revision.digest, "max_rank": revision.max_rank},
    )


def signing_key_published(*, actor: Actor, key: SigningKey) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:signing_key:publish",
        object_=_object("signing_key", key.key_id, key.key_id),
        after={"valid_from": key.valid_from.isoformat()},
    )


def signing_key_ended(*, actor: Actor, key: SigningKey, was: datetime | None) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:signing_key:end",
        object_=_object("signing_key", key.key_id, key.key_id),
        before={"valid_to": was.isoformat() if was else None},
        after={"valid_to": key.valid_to.isoformat() if key.valid_to else None},
    )


def signing_key_revoked(*, actor: Actor, key: SigningKey) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:signing_key:revoke",
        object_=_object("signing_key", key.key_id, key.key_id),
        before={"revoked": False},
        after={"revoked": True},
        reason=key.revoked_reason,
    )


def version_resigned(*, actor: Actor, version: Version, was: Signature, now: Signature) -> None:
    """Another key signed what a revoked one had; ``was`` is the signature that went, named by its digests."""
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:resign",
        object_=_version(version),
        before={
            "key": was.key.key_id,
            "bundle": hashlib.sha256(was.bundle.encode()).hexdigest(),
            "attestation": hashlib.sha256(was.attestation.encode()).hexdigest(),
        },
        after={"key": now.key.key_id, "root_digest": version.root_digest},
        reason=was.key.revoked_reason,
    )


def pipeline_key_registered(*, actor: Actor, key: PipelineKey) -> None:
    append_record(
        actor=actor,
        chain=key.tenant.name,
        action="tenant:pipeline_key:register",
        object_=_object("pipeline_key", key.key_id, key.name),
        after={"name": key.name},
    )


def pipeline_key_revoked(*, actor: Actor, key: PipelineKey) -> None:
    append_record(
        actor=actor,
        chain=key.tenant.name,
        action="tenant:pipeline_key:revoke",
        object_=_object("pipeline_key", key.key_id, key.name),
        before={"revoked": False},
        after={"revoked": True},
        reason=key.revoked_reason,
    )


def pipeline_signature_attached(*, actor: Actor, signature: PipelineSignature) -> None:
    append_record(
        actor=actor,
        chain=signature.version.adapter.tenant.name,
        action="adapter:version:attach_signature",
        object_=_version(signature.version),
        after={"key": signature.key.key_id, "root_digest": signature.version.root_digest},
    )


def signing_policy_changed(*, actor: Actor, tenant: Tenant) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:signing_policy:change",
        object_=_object("tenant", tenant.pk, tenant.name),
        before={"require_pipeline_signature": not tenant.require_pipeline_signature},
        after={"require_pipeline_signature": tenant.require_pipeline_signature},
    )


def adapter_created(*, actor: Actor, adapter: Adapter) -> None:
    append_record(
        actor=actor,
        chain=adapter.tenant.name,
        action="tenant:adapter:create",
        object_=_object("adapter", adapter.pk, adapter.name),
        after={"base_model": adapter.base_model.name},
    )


def upload_started(*, actor: Actor, version: Version) -> None:
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:upload",
        object_=_version(version),
        after={
            "state": VersionState.UPLOADING.value,
            "root_digest": version.root_digest,
            "base_revision": version.base_revision.digest,
        },
    )


def version_moved(
    *,
    actor: Actor,
    version: Version,
    action: str,
    was: VersionState,
    to: VersionState,
    reason: str = "",
    facts: dict[str, Any] | None = None,
) -> None:
    """A version changed state; ``action`` is the verb.

    finalize, validate, approve, break_glass, decline, yank, revoke or expire.
    """
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action=f"adapter:version:{action}",
        object_=_version(version),
        before={"state": was.value},
        after={"state": to.value, **(facts or {})},
        reason=reason,
    )


def approval_given(*, actor: Actor, version: Version, approval: Approval, given: int, required: int) -> None:
    """An approval that was not the last one needed; the one that completes them is told by ``version_moved``."""
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:approval:give",
        object_=_version(version),
        after={
            "root_digest": approval.root_digest,
            "validation_digest": approval.validation_digest,
            "base_digest": approval.base_digest,
            "given": given,
            "required": required,
        },
        reason=approval.comment,
    )


def glass_broken(*, actor: Actor, version: Version, reason: str) -> None:
    """A platform admin approved a version alone; told on the platform's chain beside the tenant's own record."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:break_glass:use",
        object_=_version(version),
        before={"state": VersionState.CANDIDATE.value},
        after={"state": VersionState.APPROVED.value, "root_digest": version.root_digest},
        reason=reason,
    )


def comment_written(*, actor: Actor, comment: VersionComment) -> None:
    append_record(
        actor=actor,
        chain=comment.version.adapter.tenant.name,
        action="adapter:comment:write",
        object_=_version(comment.version),
        after={"comment": comment.pk, "text": comment.text},
    )


def approval_policy_set(*, actor: Actor, tenant: Tenant, before: dict[str, Any], after: dict[str, Any]) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:approval_policy:set",
        object_=_object("tenant", tenant.pk, tenant.name),
        before=before,
        after=after,
    )


def retention_set(*, actor: Actor, adapter: Adapter, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
    append_record(
        actor=actor,
        chain=adapter.tenant.name,
        action="adapter:retention:set",
        object_=_object("adapter", adapter.pk, str(adapter)),
        before=before,
        after=after,
    )


def version_purged(*, actor: Actor, version: Version, removed: int, size: int, reason: str) -> None:
    """The bytes of a version are gone: ``removed`` files of ``size`` bytes together that no other version needs."""
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:purge",
        object_=_version(version),
        before={"purged": False},
        after={"purged": True, "files_removed": removed, "bytes_removed": size},
        reason=reason,
    )


def evaluation_set_kept(*, actor: Actor, kept: EvaluationSet, before: dict[str, Any] | None) -> None:
    """A set of examples was made or changed; the examples are told by their number and digest."""
    append_record(
        actor=actor,
        chain=kept.tenant.name,
        action="tenant:evaluation_set:keep",
        object_=_object("evaluation_set", kept.name, str(kept)),
        before=before,
        after=evaluation_set_facts(kept),
    )


def evaluation_set_removed(*, actor: Actor, tenant: Tenant, name: str, before: dict[str, Any]) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:evaluation_set:remove",
        object_=_object("evaluation_set", name, f"{tenant}/{name}"),
        before=before,
    )


def evaluation_gates_set(*, actor: Actor, tenant: Tenant, before: dict[str, Any], after: dict[str, Any]) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:evaluation_gates:set",
        object_=_object("tenant", tenant.pk, tenant.name),
        before=before,
        after=after,
    )


def revalidation_requested(*, actor: Actor, version: Version, reason: str) -> None:
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:request_revalidation",
        object_=_version(version),
        reason=reason,
    )


def version_revalidated(
    *, actor: Actor, version: Version, verdict: str, report: str, was: dict[str, str], now: dict[str, str]
) -> None:
    """The checks ran again: ``was`` and ``now`` are the state and the report that the version stands on."""
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:revalidate",
        object_=_version(version),
        before=was,
        after={**now, "verdict": verdict, "report": report},
    )


def revalidation_dropped(*, actor: Actor, version: Version) -> None:
    """Nothing was checked: the version was refused or withdrawn, or its bytes were removed, since it was asked for."""
    append_record(
        actor=actor,
        chain=version.adapter.tenant.name,
        action="adapter:version:drop_revalidation",
        object_=_version(version),
        after={"state": version.state, "is_purged": version.purged_at is not None},
    )


def evaluation_set_facts(kept: EvaluationSet) -> dict[str, Any]:
    """What the log says of a set of examples."""
    return {
        "adapter": kept.adapter.name if kept.adapter else None,
        "examples": len(kept.examples),
        "digest": kept.digest,
    }


def token_first_used(*, actor: Actor, chain: str, token: ApiToken) -> None:
    """A log-in: a token came from an address from which it had not come for a while; ``source`` says from where."""
    append_record(
        actor=actor,
        chain=chain,
        action="platform:token:log_in" if chain == PLATFORM_CHAIN else "tenant:token:log_in",
        object_=_object("token", token.prefix, token.name),
        after={"kind": token.kind, "source": actor.source},
    )


def access_denied(*, actor: Actor, chain: str, request: dict[str, str], reason: str, after: dict[str, Any]) -> None:
    """Somebody asked for what they may not; ``request`` is the object, ``after`` says how often and when."""
    append_record(
        actor=actor,
        chain=chain,
        action="platform:access:deny" if chain == PLATFORM_CHAIN else "tenant:access:deny",
        object_=request,
        after=after,
        reason=reason,
    )


def audit_exported(*, actor: Actor, chain: str, form: str, asked: dict[str, str]) -> int:
    """The number of the record, up to which the export goes; ``asked`` is what it was narrowed to."""
    return append_record(
        actor=actor,
        chain=chain,
        action="platform:audit:export" if chain == PLATFORM_CHAIN else "tenant:audit:export",
        object_=_object("audit", chain, chain),
        after={"form": form, "asked": asked},
    )


def draft_begun(*, actor: Actor, draft: HubDraft) -> None:
    append_record(
        actor=actor,
        chain=draft.tenant.name,
        action="tenant:draft:begin",
        object_=_draft(draft),
    )


def draft_moved(*, actor: Actor, draft: HubDraft, was: str, to: str) -> None:
    """Something was pushed to a draft; ``was`` and ``to`` are commits."""
    append_record(
        actor=actor,
        chain=draft.tenant.name,
        action="tenant:draft:push",
        object_=_draft(draft),
        before={"commit": was},
        after={"commit": to},
    )


def draft_removed(*, actor: Actor, draft: HubDraft, was: str, reason: str) -> None:
    append_record(
        actor=actor,
        chain=draft.tenant.name,
        action="tenant:draft:remove",
        object_=_draft(draft),
        before={"commit": was},
        reason=reason,
    )


def chain_of_token(token: ApiToken) -> str:
    """The audit chain of whom the token belongs to."""
    return token.tenant.name if token.tenant else PLATFORM_CHAIN


def _draft(draft: HubDraft) -> dict[str, str]:
    return _object("draft", draft.pk, f"{draft.tenant.name}/{draft.adapter_name}:{draft.branch}")


def _version(version: Version) -> dict[str, str]:
    return _object("version", version.pk, str(version))


def _object(kind: str, key: object, name: str) -> dict[str, str]:
    return {"kind": kind, "id": str(key), "name": name}
