"""The audit log of a tenant."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from client.decoding import decode_list
from client.models import AuditRecord, PublicKey
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.transport import Transport


class Audit:
    """Calls below `/tenants/{tenant}/audit`, and the published signing keys."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def page(self, tenant: str, *, after_seq: int = 0) -> tuple[AuditRecord, ...]:
        """Return the records that follow `after_seq`, as many as the server gives at once."""
        answer = self._transport.call("GET", path_of("tenants", tenant, "audit"), params={"after_seq": after_seq})
        return decode_list(AuditRecord, answer)

    def records(self, tenant: str, *, after_seq: int = 0) -> Iterator[AuditRecord]:
        """Yield all records after `after_seq`, oldest first, page by page."""
        while page := self.page(tenant, after_seq=after_seq):
            yield from page
            after_seq = max(after_seq + 1, page[-1].seq)

    @contextmanager
    def export(self, tenant: str) -> Iterator[Iterator[str]]:
        """Open the whole log as JSON Lines, for `client.audit.verify_export`."""
        with self._transport.lines(path_of("tenants", tenant, "audit", "export")) as lines:
            yield lines

    def keys(self) -> tuple[PublicKey, ...]:
        """Return the published signing keys; trust none of them only because the server says so."""
        answer = self._transport.call("GET", path_of("keys"))
        return decode_list(PublicKey, answer.get("keys") if isinstance(answer, dict) else answer)
