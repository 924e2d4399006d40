"""Asking the control plane to load a version."""

import enum
import json
import logging
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import httpx

_log = logging.getLogger(__name__)

_UNAUTHORIZED = frozenset({401, 403})
_SERVER_ERRORS = 500
_TOO_MANY = 429


class DemandState(enum.StrEnum):
    """What the control plane answered; UNREACHABLE when it didn't."""

    LOADING = "loading"
    LOADED = "loaded"
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"
    REFUSED = "refused"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class DemandAnswer:
    """The state of the load, with the control plane's own words for the log."""

    state: DemandState
    message: str = ""


class DemandPort(Protocol):
    """Says that a version is wanted. Asking again is harmless."""

    async def ask(self, version_id: UUID) -> DemandAnswer:
        """Ask once; a control plane that can't be reached is an answer, not an exception."""


class HttpDemand:
    """Asks over the REST API with the gateway's own token."""

    def __init__(self, *, client: httpx.AsyncClient, web_url: str, token: str) -> None:
        """Post to `web_url` (no trailing slash) as the bearer of `token`."""
        self._client = client
        self._url = f"{web_url}/api/v1/demand"
        self._headers = {"authorization": f"Bearer {token}"}

    async def ask(self, version_id: UUID) -> DemandAnswer:
        """Post the demand and read the state from the answer."""
        try:
            response = await self._client.post(self._url, json={"version_id": str(version_id)}, headers=self._headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _logged(DemandAnswer(DemandState.UNREACHABLE, type(error).__name__), version_id)
        return _logged(read_answer(response.status_code, response.content), version_id)


def read_answer(status: int, body: bytes) -> DemandAnswer:
    """What an HTTP answer to a demand means."""
    if status in _UNAUTHORIZED:
        return DemandAnswer(DemandState.UNREACHABLE, f"the gateway's token was refused with {status}")
    if status >= _SERVER_ERRORS or status == _TOO_MANY:
        return DemandAnswer(DemandState.UNREACHABLE, f"status {status}")
    if status not in (httpx.codes.OK, httpx.codes.ACCEPTED):
        return DemandAnswer(DemandState.REFUSED, f"status {status}")
    return _read_document(body)


def _read_document(body: bytes) -> DemandAnswer:
    try:
        document = json.loads(body)
        return DemandAnswer(DemandState(document["state"]), str(document.get("message", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return DemandAnswer(DemandState.UNREACHABLE, f"unreadable answer: {type(error).__name__}")


def _logged(answer: DemandAnswer, version_id: UUID) -> DemandAnswer:
    level = logging.INFO if answer.state in (DemandState.LOADING, DemandState.LOADED) else logging.WARNING
    _log.log(level, "demand for %s: %s %s", version_id, answer.state, answer.message)
    return answer
