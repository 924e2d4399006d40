"""What the agent tells web: reports of its state, and how commands went."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, Protocol, cast, get_args

import httpx

from workers.node.bounded import PLAIN, send_bounded
from workers.node.errors import ErrorClass, WebAwayError, WebFailedError, WebRefusedError

OutcomeKind = Literal["fetching", "on_disk", "loading", "loaded", "evicted", "failed"]
MAX_MESSAGE = 500

# An answer that says "this body, never": anything else (a token being rotated, a proxy's page) may pass with time.
_NEVER = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.GONE,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a command has come, or how it ended. Times are milliseconds; `fetched_bytes` were downloaded for it.

    `code` is that of the error, and `boot_id` the engine's life in which it ended, where an engine had to do with it.
    """

    engine_name: str
    generation: int
    outcome: OutcomeKind
    message: str = ""
    error_class: ErrorClass | None = None
    timings_ms: Mapping[str, int] = field(default_factory=dict)
    boot_id: str = ""
    fetched_bytes: int = 0
    code: str = ""

    def to_json(self) -> dict[str, Any]:
        """The body of POST node/outcomes; what is empty is left out."""
        optional = {
            "message": _printable(self.message)[:MAX_MESSAGE],
            "error_class": self.error_class,
            "code": self.code,
            "timings_ms": dict(self.timings_ms),
            "boot_id": self.boot_id,
            "fetched_bytes": self.fetched_bytes,
        }
        required = {"engine_name": self.engine_name, "generation": self.generation, "outcome": self.outcome}
        return {**required, **{name: value for name, value in optional.items() if value}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Outcome":
        """Read back what `to_json` wrote; raise ValueError or KeyError on anything else."""
        kind, error_class = value["outcome"], value.get("error_class")
        if kind not in get_args(OutcomeKind) or error_class not in (None, *get_args(ErrorClass)):
            raise ValueError("not an outcome")
        return cls(
            engine_name=str(value["engine_name"]),
            generation=int(value["generation"]),
            outcome=cast("OutcomeKind", kind),
            message=str(value.get("message", "")),
            error_class=cast("ErrorClass | None", error_class),
            timings_ms={str(name): int(ms) for name, ms in value.get("timings_ms", {}).items()},
            boot_id=str(value.get("boot_id", "")),
            fetched_bytes=int(value.get("fetched_bytes", 0)),
            code=str(value.get("code", "")),
        )


def _is_elsewhere(response: httpx.Response) -> bool:
    """Whether it is a proxy that knows no such page: web itself says so in JSON."""
    return response.status_code == HTTPStatus.NOT_FOUND and "json" not in response.headers["Content-Type"]


def _printable(text: str) -> str:
    """The text as web can keep it: neither half of a character pair nor a zero byte, whoever wrote what it quotes."""
    return "".join(char if char.isprintable() else " " for char in text)


class Web(Protocol):
    """The two doors of web for a node agent; both raise `WebAwayError` (or its child) or `WebRefusedError`."""

    def report(self, body: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def outcome(self, body: Mapping[str, Any]) -> None: ...


class WebClient:
    """Web over HTTP with the node's token; no redirects and no proxy, so that the token goes nowhere else."""

    def __init__(
        self, base_url: str, token: str, *, timeout_s: float = 10.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=f"{base_url}/api/v1",
            headers={
                "Authorization": f"Bearer {token}",
                "Accept": "application/json",
                "Content-Type": "application/json",
                **PLAIN,
            },
            timeout=timeout_s,
            trust_env=False,
            verify=ssl.create_default_context(),
            transport=transport,
            follow_redirects=False,
        )
        self._timeout_s = timeout_s

    def report(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """POST node/report; the answer's object."""
        return self._post("/node/report", body)

    def outcome(self, body: Mapping[str, Any]) -> None:
        """POST node/outcomes."""
        self._post("/node/outcomes", body)

    def close(self) -> None:
        self._http.close()

    def _post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            # In ASCII: a name of the engine's need not be a text that can be encoded.
            request = self._http.build_request("POST", path, content=json.dumps(dict(body)).encode())
            response = send_bounded(self._http, request, seconds=2 * self._timeout_s)
        except httpx.HTTPError as error:
            raise WebAwayError(f"web does not answer: {type(error).__name__}") from error
        if response.status_code in _NEVER and not _is_elsewhere(response):
            raise WebRefusedError(f"web refuses {path}: HTTP {response.status_code} {response.text[:MAX_MESSAGE]}")
        if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
            raise WebFailedError("web answers HTTP 500")
        if not response.is_success:
            raise WebAwayError(f"web answers HTTP {response.status_code}")
        try:
            answer = response.json()
        except (ValueError, RecursionError) as error:
            raise WebAwayError("web answers something else than JSON") from error
        if not isinstance(answer, dict):
            raise WebAwayError("web answers something else than a JSON object")
        return answer
