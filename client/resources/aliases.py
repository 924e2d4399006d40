"""Aliases and their history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.decoding import decode, decode_list
from client.models import Alias, AliasProtection, AliasSplit, JsonObject
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from client.refs import PairRef, VersionRef
    from client.transport import Transport


@dataclass(frozen=True, slots=True)
class AliasInterval:
    """How an alias's requests were split for a time; `valid_to` is None while that goes on."""

    valid_from: str
    valid_to: str | None = None
    split: AliasSplit | None = None
    release: int | None = None


@dataclass(frozen=True, slots=True)
class AliasGrant:
    """An alias that a tenant may call by `name`; the tenant isn't told to itself."""

    name: str
    tenant: str = ""
    granted_at: str = ""


@dataclass(frozen=True, slots=True)
class AliasRevision:
    """One row of an alias's history; `kind` is set, move or rollback. A version answers nothing once it is revoked."""

    revision: int
    adapter: str
    version: str
    kind: str
    previous_version: str | None = None
    actor: str | JsonObject | None = None
    reason: str = ""
    at: str = ""
    revoked_at: str | None = None
    intervals: tuple[AliasInterval, ...] = ()


def _alias(ref: PairRef, *segments: str) -> str:
    return path_of("tenants", ref.tenant, "aliases", ref.name, *segments)


class Aliases:
    """Calls below `/tenants/{tenant}/aliases`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def set(
        self, alias: PairRef, target: VersionRef, *, expected_revision: int | None = None, reason: str = ""
    ) -> Alias:
        """Point the alias at an approved version of the same tenant.

        With `expected_revision` the move happens only from that revision, and is never tried a second time by
        itself: after a lost answer the second try would be refused although the first one moved the alias.

        Raises:
            ValueError: alias and version belong to different tenants.

        """
        if alias.tenant != target.tenant:
            raise ValueError(alias.tenant, target.tenant)
        body: dict[str, object] = {"adapter": target.adapter, "version": target.version}
        if expected_revision is not None:
            body["expected_revision"] = expected_revision
        if reason:
            body["reason"] = reason
        answer = self._transport.call("PUT", _alias(alias), body=body, idempotent=expected_revision is None)
        return decode(Alias, answer)

    def split(
        self,
        alias: PairRef,
        candidate: VersionRef,
        *,
        basis_points: int = 0,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        shadow: VersionRef | None = None,
        shadow_basis_points: int = 0,
        expected_revision: int | None = None,
        reason: str = "",
    ) -> Alias:
        """Send a share of the alias's requests to a candidate, and mirror a share to a shadow, until it moves.

        Shares are in basis points, 10,000 are all. Tenants in `allow` always get the candidate, those in `deny` never.

        Raises:
            ValueError: alias, candidate and shadow belong to different tenants.

        """
        if {candidate.tenant, alias.tenant if shadow is None else shadow.tenant} != {alias.tenant}:
            raise ValueError(alias.tenant, candidate.tenant)
        body: dict[str, object] = {
            "adapter": candidate.adapter,
            "version": candidate.version,
            "basis_points": basis_points,
            "allow": list(allow),
            "deny": list(deny),
            "shadow_basis_points": shadow_basis_points,
            "reason": reason,
        }
        if shadow is not None:
            body |= {"shadow_adapter": shadow.adapter, "shadow_version": shadow.version}
        if expected_revision is not None:
            body["expected_revision"] = expected_revision
        return decode(Alias, self._transport.call("PUT", _alias(alias, "split"), body=body))

    def unsplit(self, alias: PairRef, *, reason: str = "") -> Alias:
        """Let the alias's own version answer everything again."""
        params = {"reason": reason} if reason else None
        return decode(Alias, self._transport.call("DELETE", _alias(alias, "split"), params=params))

    def all(self, tenant: str) -> tuple[Alias, ...]:
        """Return the tenant's aliases."""
        return read_all(Alias, self._transport, path_of("tenants", tenant, "aliases"))

    def get(self, alias: PairRef) -> Alias:
        """Return one alias."""
        return decode(Alias, self._transport.call("GET", _alias(alias)))

    def history(self, alias: PairRef) -> tuple[AliasRevision, ...]:
        """Return all revisions, newest first."""
        return read_all(AliasRevision, self._transport, _alias(alias, "history"))

    def at(self, alias: PairRef, when: datetime) -> AliasRevision | None:
        """Return what the alias stood for at that time, with its one interval; None before it was made."""
        answer = self._transport.call("GET", _alias(alias, "history"), params={"at": when.isoformat()})
        return next(iter(decode_list(AliasRevision, answer)), None)

    def protect(self, alias: PairRef, *, movers: Sequence[str] = (), needs_release: bool = True) -> AliasProtection:
        """Let only these people (e-mails; none: by role) move the alias, and only by releases."""
        body = {"movers": list(movers), "needs_release": needs_release}
        return decode(AliasProtection, self._transport.call("PUT", _alias(alias, "protection"), body=body))

    def unprotect(self, alias: PairRef) -> None:
        """Let everybody whose role allows it move the alias directly again."""
        self._transport.call("DELETE", _alias(alias, "protection"))

    def share(self, alias: PairRef, tenant: str, *, name: str = "", reason: str = "") -> AliasGrant:
        """Let another tenant call the alias, by `name` or by the alias's own (platform admin)."""
        body = {"tenant": tenant, **({"name": name} if name else {}), **({"reason": reason} if reason else {})}
        return decode(AliasGrant, self._transport.call("POST", _alias(alias, "grants"), body=body))

    def unshare(self, alias: PairRef, tenant: str, *, reason: str = "") -> None:
        """Let another tenant call the alias no more (platform admin)."""
        params = {"reason": reason} if reason else None
        self._transport.call("DELETE", _alias(alias, "grants", tenant), params=params)

    def grants(self, alias: PairRef) -> tuple[AliasGrant, ...]:
        """Return the other tenants that may call the alias."""
        return read_all(AliasGrant, self._transport, _alias(alias, "grants"))

    def shared_with(self, tenant: str) -> tuple[AliasGrant, ...]:
        """Return the aliases of others that the tenant may call."""
        return read_all(AliasGrant, self._transport, path_of("tenants", tenant, "shared-aliases"))

    def rollback(self, alias: PairRef, *, reason: str = "", from_revision: int | None = None) -> Alias:
        """Point the alias at the version it pointed at before; needs no approval.

        With `from_revision`, the revision to get away from, nothing happens if the alias has left it already.
        """
        body: dict[str, object] = {}
        if reason:
            body["reason"] = reason
        if from_revision is not None:
            body["from_revision"] = from_revision
        return decode(Alias, self._transport.call("POST", _alias(alias, "rollback"), body=body))
