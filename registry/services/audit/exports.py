"""Taking the audit log out of the house, which is itself told in it."""

from collections.abc import Iterator

from registry import events
from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.models import AuditRecord
from registry.selectors import list_audit

_CHUNK = 500


def export_audit(*, actor: Actor, tenant: str | None = None) -> Iterator[AuditRecord]:
    """Every record of a tenant's chain, or the platform's, oldest first; the last one tells of this export."""
    records = list_audit(actor=actor, tenant=tenant)
    told = events.audit_exported(actor=actor, chain=tenant or PLATFORM_CHAIN)
    return records.filter(seq__lte=told).order_by("seq").iterator(chunk_size=_CHUNK)
