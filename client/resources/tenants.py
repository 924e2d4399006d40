"""Tenants, their members and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode
from client.models import Member, PasswordLink, Tenant, Token
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.transport import Transport


class Tenants:
    """Calls below `/tenants`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def create(self, name: str, *, title: str = "") -> Tenant:
        """Create a tenant (platform admin)."""
        body = {"name": name, **({"title": title} if title else {})}
        return decode(Tenant, self._transport.call("POST", path_of("tenants"), body=body))

    def all(self) -> tuple[Tenant, ...]:
        """Return the tenants this token may see."""
        return read_all(Tenant, self._transport, path_of("tenants"))

    def add_member(self, tenant: str, *, email: str, role: str, name: str = "") -> Member:
        """Give a person a role; the person is created if new."""
        body = {"email": email, "role": role, **({"name": name} if name else {})}
        return decode(Member, self._transport.call("POST", path_of("tenants", tenant, "members"), body=body))

    def make_password_link(self, email: str) -> PasswordLink:
        """Return a link by which this person, or whoever has it, sets a password for the site once (platform admin)."""
        return decode(PasswordLink, self._transport.call("POST", path_of("people", email, "password-link")))

    def create_token(
        self,
        tenant: str,
        *,
        name: str,
        kind: str,
        scopes: Sequence[str],
        person_email: str | None = None,
        expires_in_days: int | None = None,
    ) -> Token:
        """Create a token (`kind` is person or application); its text is in the answer this once."""
        body: dict[str, object] = {"name": name, "kind": kind, "scopes": list(scopes)}
        if person_email:
            body["person_email"] = person_email
        if expires_in_days is not None:
            body["expires_in_days"] = expires_in_days
        return decode(Token, self._transport.call("POST", path_of("tenants", tenant, "tokens"), body=body))

    def tokens(self, tenant: str) -> tuple[Token, ...]:
        """Return the tenant's tokens, without their texts."""
        return read_all(Token, self._transport, path_of("tenants", tenant, "tokens"))

    def revoke_token(self, tenant: str, prefix: str) -> None:
        """Revoke a token by its prefix."""
        self._transport.call("DELETE", path_of("tenants", tenant, "tokens", prefix))
