"""One record: what it says, what changed, and its place in the chain."""

import hashlib
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from registry.models import AuditRecord
from registry.permissions import Action
from registry.services.audit.search import get_record
from registry.web.audit.listing import is_denied
from registry.web.audit.pages import LogPage
from registry.web.audit.texts import as_lines, visible
from registry.web.differences import beside
from registry.web.page import Facts


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether the record's hash covers what it says, and whether it names the hash of the record before it.

    ``follows`` is None where the record before it is not there.
    """

    covers: bool
    follows: bool | None


class AuditRecordPage(LogPage):
    actions = {"get": Action.READ_AUDIT}
    template_name = "registry/audit/record.html"

    def get(self, request: HttpRequest, seq: int, tenant: str | None = None) -> HttpResponse:
        record, near = get_record(actor=self.actor, tenant=self.log_of, seq=seq)
        facts = {
            **facts_of(record, near.get(seq - 1)),
            "ways": self.ways(record),
            "older_address": self.way("audit_record", seq=seq - 1) if seq - 1 in near else "",
            "newer_address": self.way("audit_record", seq=seq + 1) if seq + 1 in near else "",
        }
        return self.show(self.mine(**facts))

    def ways(self, record: AuditRecord) -> dict[str, str]:
        """The log narrowed to what this record has in common with others."""
        shared = {
            "who": record.actor.get("id", ""),
            "token": record.actor.get("token", ""),
            "object": record.object.get("id", ""),
            "action": record.action,
            "request_id": record.request_id,
        }
        log = self.way("audit")
        return {name: f"{log}?{urlencode({name: value})}" for name, value in shared.items() if value}


def facts_of(record: AuditRecord, before: AuditRecord | None) -> Facts:
    """What is shown of a record; ``before`` is the one before it in the chain."""
    return {
        "record": record,
        "is_denied": is_denied(record),
        "actor_facts": _shown(record.actor),
        "object_facts": _shown(record.object),
        "reason": visible(record.reason),
        "source": visible(record.source),
        "lines": beside(as_lines(record.before), as_lines(record.after)),
        "fit": _fit(record, before),
        "payload": record.payload,
    }


def _fit(record: AuditRecord, before: AuditRecord | None) -> Fit:
    covered = hashlib.sha256(f"{record.prev_hash}\n{record.payload}".encode()).hexdigest()
    if record.seq == 1:
        return Fit(covered == record.hash, follows=record.prev_hash == "0" * 64)
    return Fit(covered == record.hash, follows=None if before is None else before.hash == record.prev_hash)


def _shown(told: dict[str, str]) -> dict[str, str]:
    return {name: visible(str(value)) for name, value in told.items()}
