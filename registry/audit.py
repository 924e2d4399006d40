"""Appending to the audit chain, in the caller's transaction.

The form of a record is in ``registry/sql/audit_checkpoints.sql``.

Offline verification is ``client.audit``: it needs nothing but an export.
"""

from typing import Any

import rfc8785
from django.db import connection

from registry.actors import Actor

PLATFORM_CHAIN = "platform"


def append_record(
    *,
    actor: Actor,
    chain: str,
    action: str,
    object_: dict[str, str],
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    reason: str = "",
) -> int:
    """Append one record to ``chain`` (a tenant's name, or ``platform``) and return its sequence number."""
    head = _members(
        action=action,
        actor={"kind": actor.kind, "id": actor.id, "name": actor.name, "token": actor.token_prefix},
        after=after,
    )
    middle = _members(
        before=before, chain=chain, how=actor.how, object=object_, reason=reason, request_id=actor.request_id
    )
    tail = _members(source=actor.source, v=2)
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_append(%s, %s, %s, %s)", [chain, head, middle, tail])
        row = cursor.fetchone()
    return int(row[0])


def _members(**members: Any) -> str:  # noqa: ANN401  any JSON value
    canonical: bytes = rfc8785.dumps(members)
    return canonical.decode()[1:-1]
