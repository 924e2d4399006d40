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
_MOST_IN_FLIGHT = 200
_TIERS = frozenset({"disk", "remote"})


class DemandState(enum.StrEnum):
    """What the control plane answered; UNREACHABLE when it didn't."""

    LOADING = "loading"
    LOADED = "loaded"
    QUEUED = "queued"
    SHED = "shed"
    NO_NODE = "no_node"
    NO_CAPACITY = "no_capacity"
    REFUSED = "refused"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


_UNDER_WAY = frozenset({DemandState.LOADING, DemandState.LOADED, DemandState.QUEUED})


@dataclass(frozen=True, slots=True)
class DemandAnswer:
    """The state of the load, with the control plane's own words for the log.

    `code` says more than the state of why it isn't loaded, where there is more: `disk_full`, say.
    `tier` is where the version is while it isn't loaded, `disk` or `remote`; `retry_after_s` comes with a refusal.
    `wait_s` is how long the tenant's class of service lets a request wait, from its arrival.
    """

    state: DemandState
    message: str = ""
    code: str = ""
    tier: str | None = None
    retry_after_s: int | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A version that is wanted: `waiting` requests wait for it, the last of them for `deadline_ms` more.

    `in_flight` are the versions that answer through this gateway now: none of them has to make room.
    """

    version_id: UUID
    waiting: int = 1
    deadline_ms: int | None = None
    in_flight: tuple[UUID, ...] = ()


class DemandPort(Protocol):
    """Says that a version is wanted. Asking again is harmless."""

    async def ask(self, demand: Demand) -> DemandAnswer:
        """Ask once; a control plane that can't be reached is an answer, not an exception."""


class HttpDemand:
    """Asks over the REST API with the gateway's own token."""

    def __init__(self, *, client: httpx.AsyncClient, web_url: str, token: str) -> None:
        """Post to `web_url` (no trailing slash) as the bearer of `token`."""
        self._client = client
        self._url = f"{web_url}/api/v1/demand"
        self._headers = {"authorization": f"Bearer {token}"}

    async def ask(self, demand: Demand) -> DemandAnswer:
        """Post the demand and read the state from the answer."""
        try:
            response = await self._client.post(self._url, json=_body(demand), headers=self._headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _logged(DemandAnswer(DemandState.UNREACHABLE, type(error).__name__), demand.version_id)
        return _logged(read_answer(response.status_code, response.content), demand.version_id)


def _body(demand: Demand) -> dict[str, object]:
    return {
        "version_id": str(demand.version_id),
        "waiting": demand.waiting,
        "deadline_ms": demand.deadline_ms,
        "in_flight": [str(version_id) for version_id in demand.in_flight[:_MOST_IN_FLIGHT]],
    }


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
        tier, retry_after_s, wait_s = (document.get(key) for key in ("tier", "retry_after_s", "wait_s"))
        return DemandAnswer(
            DemandState(document["state"]),
            str(document.get("message", "")),
            code=str(document.get("code", "")),
            tier=tier if tier in _TIERS else None,
            retry_after_s=retry_after_s if isinstance(retry_after_s, int) and retry_after_s > 0 else None,
            wait_s=float(wait_s) if isinstance(wait_s, int | float) and wait_s >= 0 else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return DemandAnswer(DemandState.UNREACHABLE, f"unreadable answer: {type(error).__name__}")


def _logged(answer: DemandAnswer, version_id: UUID) -> DemandAnswer:
    level = logging.INFO if answer.state in _UNDER_WAY else logging.WARNING
    _log.log(level, "demand for %s: %s %s", version_id, answer.state, answer.message)
    return answer
