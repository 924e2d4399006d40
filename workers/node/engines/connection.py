"""How a driver talks to its engine over HTTP: bounded answers, and every failure as an error of the agent's tree."""

import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx

from workers.node.bounded import PLAIN, send_bounded
from workers.node.errors import EngineAwayError

CONNECT_TIMEOUT_S = 5.0
LOAD_TIMEOUT_S = 300.0
MAX_MESSAGE = 400


@cache
def _trust() -> ssl.SSLContext:
    """Reading the authorities takes 30 ms, which is long for who makes many clients."""
    return httpx.create_ssl_context(trust_env=False)


class EngineGoneError(EngineAwayError):
    """Nobody listens at the engine's address: its process has ended."""


class EngineSlowError(EngineAwayError):
    """It listens, but has not answered in time."""


class Connection:
    """One engine server at `url`. Threads may share it."""

    def __init__(self, url: str, *, timeout_s: float = 5.0, transport: httpx.BaseTransport | None = None) -> None:
        """Say how many seconds a short request may take."""
        # A proxy of the environment has no business between the agent and its own engine.
        self._http = httpx.Client(
            base_url=url, timeout=timeout_s, headers=PLAIN, trust_env=False, verify=_trust(), transport=transport
        )
        self._timeout_s = timeout_s

    def close(self) -> None:
        self._http.close()

    def ask(self, path: str) -> httpx.Response:
        """GET what a sound engine always answers with success; `EngineAwayError` when this one doesn't."""
        response = self.send("GET", path)
        if not response.is_success:
            raise EngineAwayError(f"the engine answers {path} with HTTP {response.status_code}")
        return response

    def is_healthy(self) -> bool:
        """Whether the engine says that it is well; `EngineAwayError` when it says nothing."""
        return self.send("GET", "/health").is_success

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request; the answer, whatever its status.

        Raises:
            EngineGoneError: nobody listens. EngineSlowError: time is up. EngineAwayError: the connection broke.

        """
        seconds = timeout_s or self._timeout_s
        timeout = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S)
        request = self._http.build_request(method, path, json=body, timeout=timeout, headers=headers)
        try:
            return send_bounded(self._http, request, seconds=seconds + CONNECT_TIMEOUT_S)
        except httpx.ConnectError as error:
            raise EngineGoneError("the engine does not answer: ConnectError") from error
        except httpx.TimeoutException as error:
            raise EngineSlowError(f"the engine does not answer: {type(error).__name__}") from error
        except httpx.HTTPError as error:
            raise EngineAwayError(f"the engine does not answer: {type(error).__name__}") from error


def object_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON object in the answer; `EngineAwayError` when it is something else."""
    try:
        value = response.json()
    except (ValueError, RecursionError) as error:
        raise EngineAwayError("the engine answers something else than JSON") from error
    if not isinstance(value, dict):
        raise EngineAwayError("the engine answers something else than a JSON object")
    return value


def reason_of(response: httpx.Response, *places: str) -> str:
    """The text at the first of `places` that the answer has, or else all of it, with the status, in one printable line.

    A place is a path of keys with dots between them, as `error.message`.
    """
    text = next((found for place in places if (found := _text_at(response, place))), response.text)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())[:MAX_MESSAGE]
    return f"HTTP {response.status_code}: {line}"


def _text_at(response: httpx.Response, place: str) -> str | None:
    try:
        value: Any = response.json()
        for key in place.split("."):
            value = value[key]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return value if isinstance(value, str) else None
