"""What the API answers: plain JSON documents made from models."""

from typing import Any

from releases.models import Alias, AliasRevision

Document = dict[str, Any]


def alias_document(alias: Alias) -> Document:
    return {
        "tenant": alias.tenant.name,
        "name": alias.name,
        "adapter": alias.adapter.name,
        "version": alias.version.name,
        "version_id": alias.version_id,
        "revision": alias.revision,
        "updated_at": alias.updated_at,
    }


def alias_revision_document(row: AliasRevision) -> Document:
    return {
        "revision": row.number,
        "adapter": row.version.adapter.name,
        "version": row.version.name,
        "previous_version": row.previous_version.name if row.previous_version else None,
        "kind": row.kind,
        "actor": {"kind": row.actor_kind, "id": row.actor_id, "name": row.actor_name},
        "reason": row.reason,
        "at": row.at,
    }
