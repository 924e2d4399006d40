"""What the API answers: plain JSON documents made from models."""

from typing import Any

from django.db.models import prefetch_related_objects

from registry.models import (
    Adapter,
    ApiToken,
    BaseModel,
    BaseModelRevision,
    Membership,
    Tenant,
    Version,
)
from registry.selectors import SHOWN_WITH_VERSION
from registry.services.transfers.parts import FileInParts
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
        "purged_at": version.purged_at,
        "approvals": [
            {
                "reviewer": approval.reviewer.email,
                "decision": approval.decision,
                "break_glass": approval.break_glass,
                "comment": approval.comment,
                "current": approval.validation_digest == version.validation_digest,
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
                "part_bytes": target.part_bytes,
            }
            for target in started.targets
        ],
    }


def parts_document(file: FileInParts) -> Document:
    return {
        "path": file.path,
        "size": file.plan.size,
        "part_bytes": file.plan.part_bytes,
        "stored": file.stored,
        "arrived": [{"number": part.number, "size": part.size, "sha256": part.sha256} for part in file.arrived],
        "addresses": [
            {"number": number, "method": put.method, "url": put.url, "headers": put.headers}
            for number, put in file.addresses
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
