"""The routes of Lorekeeper's own plugin for vLLM: where each adapter is, and an unload that frees memory.

The plugin (`deploy/engine/residency_plugin.py`) runs in the engine. It is the operator's choice; where it is missing,
or has another token, the engine is driven as it is without.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus

from workers.node.engines.connection import Connection, object_of, reason_of
from workers.node.engines.ports import EngineTier
from workers.node.errors import EngineAwayError

_CLOSED = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
_log = logging.getLogger(__name__)


class Residency:
    """The plugin behind this connection, which wants this token."""

    def __init__(self, connection: Connection, token: str) -> None:
        self._connection = connection
        self._headers = {"Authorization": f"Bearer {token}"}
        self._warned = False

    def tiers(self) -> Mapping[str, EngineTier] | None:
        """Where the adapters are that the engine holds; None where the plugin doesn't answer."""
        response = self._connection.send("GET", "/lorekeeper/adapters", headers=self._headers)
        if response.status_code in _CLOSED:
            self._warn()
            return None
        if not response.is_success:
            raise EngineAwayError(f"the residency plugin fails: {reason_of(response, 'detail', 'error.message')}")
        places = object_of(response).get("adapters")
        if not isinstance(places, dict):
            raise EngineAwayError("the residency plugin answers in an unknown form")
        known: dict[str, EngineTier] = {"gpu": "gpu", "cpu": "cpu"}
        return {str(name): known[tier] for name, tier in places.items() if tier in known}

    def unload(self, name: str) -> bool:
        """Forget the name and free its memory, unknown is success; whether the plugin did so."""
        body = {"lora_name": name}
        response = self._connection.send("POST", "/lorekeeper/unload", body, headers=self._headers)
        if response.status_code == HTTPStatus.NOT_FOUND and "cannot be found" in response.text:
            return True
        if response.status_code in _CLOSED:
            self._warn()
            return False
        if not response.is_success:
            # The engine's own unload forgets the name all the same; it takes long for its memory to be of use.
            _log.warning("the residency plugin fails: %s", reason_of(response, "detail", "error.message"))
        return response.is_success

    def _warn(self) -> None:
        if not self._warned:
            _log.warning("vLLM runs without the residency plugin, or it has another token than this agent")
        self._warned = True
