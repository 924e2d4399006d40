"""From the Authorization header to the tenant, by the snapshot alone."""

import hashlib
from datetime import datetime

from gateway.errors import NotAuthenticated, TokenExpired
from gateway.routing.snapshot import RoutingSnapshot

_LONGEST = 128  # an API key has 59 characters


def authenticate(snapshot: RoutingSnapshot, authorization: str | None, *, now: datetime) -> str:
    """The tenant of the API key; raises NotAuthenticated or TokenExpired, never saying which part was wrong.

    The key is looked up by its SHA-256. How long that takes tells at most something of the digest, from which no key
    that has it can be found, so nothing here has to take the same time for all.
    """
    if authorization is None:
        message = "No API key was sent. Send it as 'Authorization: Bearer <key>'."
        raise NotAuthenticated(message)
    scheme, _, text = authorization.partition(" ")
    text = text.strip(" ")
    if len(text) > _LONGEST or scheme.lower() != "bearer":
        raise _unknown()
    token = snapshot.tokens.get(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    if token is None:
        raise _unknown()
    if token.expires_at is not None and token.expires_at <= now:
        message = "The API key has expired."
        raise TokenExpired(message)
    return token.tenant


def _unknown() -> NotAuthenticated:
    return NotAuthenticated("The API key isn't valid for this gateway.")
