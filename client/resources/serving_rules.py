"""What a tenant may ask of the gateway: limits, base models, mirroring."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from client.decoding import decode
from client.transport import path_of

if TYPE_CHECKING:
    from client.transport import Transport


@dataclass(frozen=True, slots=True)
class ServingRules:
    """Limits per minute or at once, None: no limit; `gpu_ms_per_minute` is milliseconds in engines.

    `base_models` may be asked for by their own names; `allows_shadow`: requests may be mirrored to a candidate.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    gpu_ms_per_minute: int | None = None
    base_models: tuple[str, ...] = ()
    allows_shadow: bool = True


def _path(tenant: str) -> str:
    return path_of("tenants", tenant, "serving-rules")


class TenantServingRules:
    """Calls on `/tenants/{tenant}/serving-rules`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def get(self, tenant: str) -> ServingRules:
        """Return what the tenant may ask for."""
        return decode(ServingRules, self._transport.call("GET", _path(tenant)))

    def set(self, tenant: str, rules: ServingRules) -> ServingRules:
        """Replace the tenant's rules (platform admin)."""
        body = {**asdict(rules), "base_models": list(rules.base_models)}
        return decode(ServingRules, self._transport.call("PUT", _path(tenant), body=body))
