"""What versions are evaluated on, the gates they keep to, and validating again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode
from client.models import EvaluationGates, EvaluationSet, ReportSummary, Revalidation
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from client.models import JsonObject
    from client.refs import VersionRef
    from client.transport import Transport


def _version(ref: VersionRef, *segments: str) -> str:
    return path_of("tenants", ref.tenant, "adapters", ref.adapter, "versions", ref.version, *segments)


class Evaluations:
    """Calls on `/tenants/{tenant}/evaluation-sets`, `evaluation-gates`, and the reports of versions."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def sets(self, tenant: str) -> tuple[EvaluationSet, ...]:
        """Return the tenant's sets, without their examples."""
        return read_all(EvaluationSet, self._transport, path_of("tenants", tenant, "evaluation-sets"))

    def get_set(self, tenant: str, name: str) -> EvaluationSet:
        """Return a set with its examples."""
        return decode(EvaluationSet, self._transport.call("GET", path_of("tenants", tenant, "evaluation-sets", name)))

    def keep_set(
        self, tenant: str, name: str, examples: Sequence[JsonObject], *, adapter: str | None = None
    ) -> EvaluationSet:
        """Make or replace a set: for one adapter, or for every adapter without a set of its own.

        Each example has `prompt`, and perhaps `reference` and `forbidden` (a regular expression).
        """
        body = {"examples": list(examples), "adapter": adapter}
        path = path_of("tenants", tenant, "evaluation-sets", name)
        return decode(EvaluationSet, self._transport.call("PUT", path, body=body))

    def remove_set(self, tenant: str, name: str) -> None:
        """Remove a set."""
        self._transport.call("DELETE", path_of("tenants", tenant, "evaluation-sets", name))

    def gates(self, tenant: str) -> EvaluationGates:
        """Return the tenant's gates."""
        return decode(EvaluationGates, self._transport.call("GET", path_of("tenants", tenant, "evaluation-gates")))

    def set_gates(self, tenant: str, gates: Mapping[str, object]) -> EvaluationGates:
        """Set all gates at once; those that are not named are open."""
        path = path_of("tenants", tenant, "evaluation-gates")
        return decode(EvaluationGates, self._transport.call("PUT", path, body=dict(gates)))

    def reports(self, ref: VersionRef) -> tuple[ReportSummary, ...]:
        """Return every report of a version, the newest first."""
        return read_all(ReportSummary, self._transport, _version(ref, "reports"))

    def revalidate(self, ref: VersionRef, *, reason: str = "") -> Revalidation:
        """Ask for the checks to run again, under the rules of today; `revalidations` tells when they have."""
        body = {"reason": reason} if reason else {}
        return decode(Revalidation, self._transport.call("POST", _version(ref, "revalidate"), body=body))

    def revalidations(self, ref: VersionRef) -> tuple[Revalidation, ...]:
        """Return the re-runs that were asked for, the newest first."""
        return read_all(Revalidation, self._transport, _version(ref, "revalidations"))
