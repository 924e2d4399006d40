"""What the API answers: plain JSON documents made from models."""

from collections.abc import Iterable
from typing import Any

from cachecontrol.models import Node, Residency

Document = dict[str, Any]


def node_document(node: Node, residencies: Iterable[Residency] = (), *, token: str | None = None) -> Document:
    """A node with what the caller may see on it. The token's text is there only in the answers that make one."""
    shown: Document = {
        "name": node.name,
        "engine_kind": node.engine_kind,
        "engine_url": node.engine_url,
        "base_model": node.base_revision.base_model.name,
        "base_revision": node.base_revision.label,
        "gpu_slots": node.gpu_slots,
        "cpu_slots": node.cpu_slots,
        "max_rank": node.max_rank,
        "disk_bytes": node.disk_bytes,
        "status": node.status,
        "engine_healthy": node.engine_healthy,
        "tainted": node.tainted,
        "boot_id": node.boot_id or None,
        "last_seen_at": node.last_seen_at,
        "residencies": [residency_document(residency) for residency in residencies],
    }
    return shown if token is None else {**shown, "token": token}


def residency_document(residency: Residency) -> Document:
    version = residency.version
    return {
        "node": residency.node.name,
        "tenant": version.adapter.tenant.name,
        "adapter": version.adapter.name,
        "version": version.name,
        "version_id": version.pk,
        "engine_name": version.engine_name,
        "desired": residency.desired,
        "observed": residency.observed,
        "generation": residency.generation,
        "message": residency.message,
        "load_ms": residency.load_ms,
        "updated_at": residency.state_changed_at,
    }
