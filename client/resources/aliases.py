"""Aliases and their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode
from client.models import Alias, AliasRevision
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from client.refs import PairRef, VersionRef
    from client.transport import Transport


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

    def all(self, tenant: str) -> tuple[Alias, ...]:
        """Return the tenant's aliases."""
        return read_all(Alias, self._transport, path_of("tenants", tenant, "aliases"))

    def get(self, alias: PairRef) -> Alias:
        """Return one alias."""
        return decode(Alias, self._transport.call("GET", _alias(alias)))

    def history(self, alias: PairRef) -> tuple[AliasRevision, ...]:
        """Return all revisions, newest first."""
        return read_all(AliasRevision, self._transport, _alias(alias, "history"))

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
