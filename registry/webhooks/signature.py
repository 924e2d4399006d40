"""Signatures of deliveries, in the form of Standard Webhooks 1.0: HMAC-SHA-256 over id, time and body. Pure.

Receivers check them with any library for Standard Webhooks. While a secret is being changed a delivery is signed with
both, and either is enough.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Final

ID_HEADER: Final = "webhook-id"
TIME_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
SECRET_BYTES: Final = 32
_SECRET: Final = "whsec_"  # noqa: S105  what a secret begins with
_VERSION: Final = "v1"


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """A secret as its receiver keeps it: ``whsec_`` and base64."""
    return _SECRET + base64.b64encode(secret).decode()


def signed_headers(keys: Iterable[bytes], *, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of one attempt, signed with each of ``keys``; ``timestamp`` in seconds since 1970, UTC."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    made = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return {
        ID_HEADER: event_id,
        TIME_HEADER: str(timestamp),
        SIGNATURE_HEADER: " ".join(f"{_VERSION},{one}" for one in made),
    }
