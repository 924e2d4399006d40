"""The audit log of a tenant, and the platform's own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from client.models import AuditCheckpoint, AuditRecord
from client.pages import iterate
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.transport import Transport

PLATFORM: Final = "platform"


class Audit:
    """Calls below `/tenants/{tenant}/audit` and `/audit`.

    `tenant` may be `platform`, a name that no tenant has: then it is the log of the platform itself.
    """

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def records(
        self, tenant: str, *, after_seq: int = 0, action: str | None = None, actor: str | None = None
    ) -> Iterator[AuditRecord]:
        """Yield all records after `after_seq`, oldest first, page by page.

        `action` is a tag or its beginning, `actor` a person's e-mail or a token's prefix.
        """
        wanted = {"after_seq": after_seq, "action": action, "actor": actor}
        filters = {name: value for name, value in wanted.items() if value}
        return iterate(AuditRecord, self._transport, _log(tenant), filters=filters)

    @contextmanager
    def export(self, tenant: str) -> Iterator[Iterator[str]]:
        """Open the whole log as JSON Lines, for `client.audit.verify_export`."""
        with self._transport.lines(_log(tenant, "export")) as lines:
            yield lines

    def checkpoints(self, tenant: str) -> Iterator[AuditCheckpoint]:
        """Yield where the log's signed checkpoints lie, oldest first."""
        return iterate(AuditCheckpoint, self._transport, _log(tenant, "checkpoints"))

    def checkpoint(self, tenant: str, seq: int) -> bytes:
        """Return one signed checkpoint, byte for byte; see `client.audit.read_checkpoints`."""
        with self._transport.lines(_log(tenant, "checkpoints", str(seq))) as lines:
            return "\n".join(lines).encode()


def _log(tenant: str, *rest: str) -> str:
    return path_of("audit", *rest) if tenant == PLATFORM else path_of("tenants", tenant, "audit", *rest)
