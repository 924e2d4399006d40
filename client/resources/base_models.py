"""Base model revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.decoding import decode
from client.models import BaseModel, BaseModelRevision
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from client.transport import Transport


class BaseModels:
    """Calls below `/base-models`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def register(self, name: str, *, revision: str, description: dict[str, object], max_rank: int) -> BaseModelRevision:
        """Register a described revision (see `registry.base_models.description`); weights are never sent."""
        body = {"name": name, "revision": revision, "description": description, "max_rank": max_rank}
        return decode(BaseModelRevision, self._transport.call("POST", path_of("base-models"), body=body))

    def all(self) -> tuple[BaseModel, ...]:
        """Return all base models with their revisions."""
        return read_all(BaseModel, self._transport, path_of("base-models"))

    def get(self, name: str, revision: str) -> BaseModelRevision:
        """Return one revision by its label."""
        return decode(
            BaseModelRevision, self._transport.call("GET", path_of("base-models", name, "revisions", revision))
        )
