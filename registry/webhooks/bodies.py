"""What receivers are sent: an audit record as an event. Pure.

The body of an event never changes, however often it is sent; its id names the chain and the record in it.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from registry.webhooks.kinds import KINDS, PING

# Of who acted: neither the token nor the address that the act came from leaves the house.
_TOLD_OF_ACTOR: Final = ("kind", "id", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An audit record, as far as receivers are told of it; ``tenant`` None: it is in the platform's own chain."""

    chain: str
    seq: int
    tenant: str | None
    at: datetime
    action: str
    actor: dict[str, Any]
    object: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    reason: str
    hash: str


def event_id(*, chain: str, seq: int) -> str:
    """The same for every endpoint and every attempt: who has seen it has seen the event."""
    return f"{chain}_{seq}"


def object_key(happening: Happening) -> str:
    """What the event is about: events of one object come in their order."""
    return f"{happening.object.get('kind', '')}:{happening.object.get('id', '')}"


def event_body(happening: Happening) -> str:
    return _text(
        {
            "id": event_id(chain=happening.chain, seq=happening.seq),
            "type": KINDS[happening.action],
            "timestamp": _moment(happening.at),
            "tenant": happening.tenant,
            "data": {
                "object": happening.object,
                "actor": {name: happening.actor.get(name) for name in _TOLD_OF_ACTOR},
                "before": happening.before,
                "after": happening.after,
                "reason": happening.reason,
                "audit": {
                    "chain": happening.chain,
                    "seq": happening.seq,
                    "action": happening.action,
                    "hash": happening.hash,
                },
            },
        }
    )


def ping_body(*, event_id: str, tenant: str | None, endpoint: str, at: datetime) -> str:
    """A test event: it says to which endpoint it was sent, and nothing happened."""
    facts = {"id": event_id, "type": PING, "timestamp": _moment(at), "tenant": tenant, "data": {"endpoint": endpoint}}
    return _text(facts)


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
