"""Adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode
from client.models import Adapter
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from client.transport import Transport


class Adapters:
    """Calls below `/tenants/{tenant}/adapters`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def create(self, tenant: str, name: str, *, base_model: str, description: str = "") -> Adapter:
        """Create an adapter for a base model."""
        body = {"name": name, "base_model": base_model, **({"description": description} if description else {})}
        return decode(Adapter, self._transport.call("POST", path_of("tenants", tenant, "adapters"), body=body))

    def all(self, tenant: str) -> tuple[Adapter, ...]:
        """Return the tenant's adapters."""
        return read_all(Adapter, self._transport, path_of("tenants", tenant, "adapters"))

    def get(self, tenant: str, name: str) -> Adapter:
        """Return one adapter."""
        return decode(Adapter, self._transport.call("GET", path_of("tenants", tenant, "adapters", name)))
