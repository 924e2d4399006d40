"""What the API answers: plain JSON documents made from models."""

from typing import Any

from django.db.models import prefetch_related_objects

from registry.models import (
    Adapter,
    ApiToken,
    AuditRecord,
    BaseModel,
    BaseModelRevision,
    Membership,
    SigningKey,
    Tenant,
    Version,
)
from registry.selectors import SHOWN_WITH_VERSION
from registry.services.uploads import StartedUpload

Document = dict[str, Any]


def tenant_document(tenant: Tenant) -> Document:
    return {"name": tenant.name, "title": tenant.title, "created_at": tenant.created_at}


def member_document(membership: Membership) -> Document:
    return {
        "tenant": membership.tenant.name,
        "email": membership.person.email,
        "name": membership.person.name,
        "role": membership.role,
    }


def token_document(token: ApiToken, text: str | None = None) -> Document:
    shown: Document = {
        "prefix": token.prefix,
        "name": token.name,
        "kind": token.kind,
        "person_email": token.person.email if token.person else None,
        "scopes": list(token.scopes),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }
    return shown if text is None else {**shown, "token": text}


def revision_document(revision: BaseModelRevision) -> Document:
    return {
        "name": revision.base_model.name,
        "revision": revision.label,
        "digest": revision.digest,
        "max_rank": revision.max_rank,
        "created_at": revision.created_at,
    }


def base_model_document(model: BaseModel) -> Document:
    return {"name": model.name, "revisions": [revision_document(revision) for revision in model.revisions.all()]}


def adapter_document(adapter: Adapter) -> Document:
    return {
        "tenant": adapter.tenant.name,
        "name": adapter.name,
        "base_model": adapter.base_model.name,
        "description": adapter.description,
        "created_at": adapter.created_at,
    }


def version_document(version: Version) -> Document:
    prefetch_related_objects([version], *SHOWN_WITH_VERSION)
    return {
        "id": str(version.pk),
        "tenant": version.adapter.tenant.name,
        "adapter": version.adapter.name,
        "name": version.name,
        "state": version.state,
        "state_message": version.state_message,
        "base_model": version.base_revision.base_model.name,
        "base_revision": version.base_revision.label,
        "base_digest": version.base_revision.digest,
        "root_digest": version.root_digest,
        "validation_digest": version.validation_digest,
        "engine_name": version.engine_name,
        "rank": version.rank,
        "target_modules": list(version.target_modules),
        "files": [
            {"path": file.path, "size": file.artifact.size, "sha256": file.artifact.sha256}
            for file in version.files.all()
        ],
        "uploader": version.uploader.email,
        "created_at": version.created_at,
        "lineage": version.lineage,
        "approvals": [
            {
                "reviewer": approval.reviewer.email,
                "decision": approval.decision,
                "comment": approval.comment,
                "at": approval.created_at,
            }
            for approval in version.approvals.all()
        ],
    }


def upload_document(started: StartedUpload) -> Document:
    return {
        **version_document(started.version),
        "uploads": [
            {
                "path": target.path,
                "method": target.put.method,
                "url": target.put.url,
                "headers": target.put.headers,
                "stored": target.stored,
            }
            for target in started.targets
        ],
    }


def signature_document(version: Version) -> Document:
    signature = version.signature
    return {
        "bundle": signature.bundle,
        "attestation": signature.attestation,
        "key_id": signature.key.key_id,
        "public_key": signature.key.public_pem,
    }


def key_document(key: SigningKey) -> Document:
    return {
        "key_id": key.key_id,
        "public_key": key.public_pem,
        "valid_from": key.valid_from,
        "valid_to": key.valid_to,
    }


def audit_document(record: AuditRecord) -> Document:
    return {
        "chain": record.chain,
        "seq": record.seq,
        "at": f"{record.at:%Y-%m-%dT%H:%M:%S.%fZ}",
        "actor": record.actor,
        "action": record.action,
        "object": record.object,
        "before": record.before,
        "after": record.after,
        "reason": record.reason,
        "request_id": record.request_id,
        "source": record.source,
        "payload": record.payload,
        "prev_hash": record.prev_hash,
        "hash": record.hash,
    }
