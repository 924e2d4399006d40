"""Tickets: the presigned addresses of the folder store. Pure: text in, text out, no clock and no disk.

A ticket is `<base64url of JSON>.<base64url of HMAC-SHA-256>`; like a presigned S3 URL it is a capability by itself.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from registry.stores.errors import TicketError, TicketExpired

Method = Literal["GET", "PUT"]
MAX_TICKET_CHARACTERS = 2048
_PURPOSE = b"lorekeeper folder store ticket v1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Who holds it may do `method` on `key` until `expires` (seconds since 1970, UTC).

    Attributes:
        size: bytes to be put; -1 for GET.
        sha256: digest (hex) of what is to be put; empty for GET.
        upload: id of the upload in parts that it belongs to; empty for a whole object.
        part: number of the part, from 1; 0 for a whole object.

    """

    method: Method
    key: str
    expires: int
    size: int = -1
    sha256: str = ""
    upload: str = ""
    part: int = 0


def write_ticket(secret: bytes, ticket: Ticket) -> str:
    body = _encode(json.dumps(asdict(ticket), separators=(",", ":"), sort_keys=True).encode())
    return f"{body}.{_encode(_seal(secret, body))}"


def read_ticket(secret: bytes, text: str, *, method: str, now: datetime) -> Ticket:
    """Check a ticket and return it.

    Raises:
        TicketError: not a ticket of this store, or for another method.
        TicketExpired: its time is over.

    """
    body, _, seal = text[: MAX_TICKET_CHARACTERS + 1].partition(".")
    if not hmac.compare_digest(seal.encode(errors="replace"), _encode(_seal(secret, body)).encode()):
        raise TicketError("this address was not given out by this store")
    ticket = Ticket(**json.loads(base64.urlsafe_b64decode(body + "==")))
    if ticket.method != method:
        raise TicketError(f"this address is for {ticket.method}, not {method!a}")
    if now.timestamp() >= ticket.expires:
        raise TicketExpired("this address has expired")
    return ticket


def _seal(secret: bytes, body: str) -> bytes:
    return hmac.digest(secret, _PURPOSE + body.encode(errors="replace"), hashlib.sha256)


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
