"""From the Authorization header to the tenant, by the snapshot alone."""

import hashlib
import hmac
import re
from datetime import datetime

from gateway.errors import NotAuthenticated, TokenExpired
from gateway.routing.snapshot import RoutingSnapshot

_TOKEN = re.compile(r"lk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
_NO_DIGEST = "0" * 64


def authenticate(snapshot: RoutingSnapshot, authorization: str | None, *, now: datetime) -> str:
    """The tenant of the API key; raises NotAuthenticated or TokenExpired, never saying which part was wrong."""
    digest = hashlib.sha256(_token_text(authorization).encode("ascii")).hexdigest()
    token = snapshot.tokens.get(digest)
    known = token.digest if token is not None else _NO_DIGEST
    if token is None or not hmac.compare_digest(known, digest):
        message = "The API key isn't valid for this gateway."
        raise NotAuthenticated(message)
    if token.expires_at is not None and token.expires_at <= now:
        message = "The API key has expired."
        raise TokenExpired(message)
    return token.tenant


def _token_text(authorization: str | None) -> str:
    if authorization is None:
        message = "No API key was sent. Send it as 'Authorization: Bearer <key>'."
        raise NotAuthenticated(message)
    scheme, _, text = authorization.partition(" ")
    text = text.strip()
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(text):
        message = "The API key isn't valid for this gateway."
        raise NotAuthenticated(message)
    return text
