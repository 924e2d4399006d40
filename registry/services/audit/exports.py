"""Taking the audit log out of the house, which is itself told in it."""

from collections.abc import Iterator
from typing import Any

from registry import events
from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.models import AuditRecord
from registry.selectors import list_audit
from registry.services.audit.search import Wanted, walk_audit

_CHUNK = 500


def export_audit(
    *, actor: Actor, tenant: str | None = None, wanted: Wanted | None = None, form: str = "jsonl"
) -> Iterator[AuditRecord]:
    """The records of a tenant's chain, or the platform's, oldest first. The log is told of it first.

    Args:
        actor: who takes them.
        tenant: its name; None for the platform.
        wanted: what they have to say; None for the whole chain, which alone can be checked: it ends with the record of
            this export.
        form: what the records are written as, for the log.

    """
    records = list_audit(actor=actor, tenant=tenant)
    chain = tenant or PLATFORM_CHAIN
    asked = {} if wanted is None else wanted.told()
    told = events.audit_exported(actor=actor, chain=chain, form=form, asked=asked)
    if wanted is not None and asked:
        return walk_audit(chain, wanted, until=told - 1)
    return records.filter(seq__lte=told).order_by("seq").iterator(chunk_size=_CHUNK)


def audit_document(record: AuditRecord) -> dict[str, Any]:
    """A record as programs read it, and as the offline check wants it."""
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
        "how": record.how,
        "payload": record.payload,
        "prev_hash": record.prev_hash,
        "hash": record.hash,
    }
