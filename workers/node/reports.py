"""What the agent tells web: reports of its state, and outcomes of commands, which are kept on disk until delivered."""

import json
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Event, Lock
from typing import Any, Literal, Protocol, cast, get_args

import httpx

from workers.node.bounded import PLAIN, send_bounded
from workers.node.durable import read_json, remove, write_json
from workers.node.errors import ErrorClass, WebAwayError, WebError, WebRefusedError

_log = logging.getLogger(__name__)

OutcomeKind = Literal["fetching", "on_disk", "loading", "loaded", "evicted", "failed"]
MAX_MESSAGE = 500
MAX_PAUSE_S = 10.0
FIRST_PAUSE_S = 0.2

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
    """How far a command has come, or how it ended. Times are milliseconds."""

    engine_name: str
    generation: int
    outcome: OutcomeKind
    message: str = ""
    error_class: ErrorClass | None = None
    timings_ms: Mapping[str, int] = field(default_factory=dict)
    boot_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """The body of POST node/outcomes; what is empty is left out."""
        optional = {
            "message": self.message[:MAX_MESSAGE],
            "error_class": self.error_class,
            "timings_ms": dict(self.timings_ms),
            "boot_id": self.boot_id,
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
        )


class Web(Protocol):
    """The two doors of web for a node agent; both raise `WebAwayError` or `WebRefusedError`."""

    def report(self, body: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def outcome(self, body: Mapping[str, Any]) -> None: ...


class WebClient:
    """Web over HTTP with the node's token; no redirects and no proxy, so that the token goes nowhere else."""

    def __init__(
        self, base_url: str, token: str, *, timeout_s: float = 10.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=f"{base_url}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json", **PLAIN},
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
            request = self._http.build_request("POST", path, json=dict(body))
            response = send_bounded(self._http, request, seconds=2 * self._timeout_s)
        except httpx.HTTPError as error:
            raise WebAwayError(f"web does not answer: {type(error).__name__}") from error
        if response.status_code in _NEVER:
            raise WebRefusedError(f"web refuses {path}: HTTP {response.status_code} {response.text[:MAX_MESSAGE]}")
        if not response.is_success:
            raise WebAwayError(f"web answers HTTP {response.status_code}")
        try:
            answer = response.json()
        except (ValueError, RecursionError) as error:
            raise WebAwayError("web answers something else than JSON") from error
        if not isinstance(answer, dict):
            raise WebAwayError("web answers something else than a JSON object")
        return answer


class Outbox:
    """Outcomes on disk in the order in which they happened: `<number>.json`, removed when delivered."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._last = max((int(path.stem) for path in self._paths()), default=0)

    def append(self, outcome: Outcome) -> None:
        """Keep the outcome durably, behind all others."""
        with self._lock:
            self._last += 1
            write_json(self._folder / f"{self._last:020d}.json", outcome.to_json())

    def pending(self) -> list[tuple[Path, dict[str, Any]]]:
        """Everything that waits, oldest first."""
        return [(path, value) for path in self._paths() if (value := _readable(path)) is not None]

    def done(self, path: Path) -> None:
        """Forget a delivered one."""
        remove(path)

    def _paths(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("*.json") if path.stem.isdecimal())


def _readable(path: Path) -> dict[str, Any] | None:
    try:
        return read_json(path)
    except ValueError:
        _log.exception("dropped a damaged outcome")
        remove(path)
        return None


class Courier:
    """Delivers the outbox: in order, until web takes each; a thread runs `run`, others `submit`."""

    def __init__(self, outbox: Outbox, web: Web) -> None:
        self._outbox = outbox
        self._web = web
        self._wake = Event()
        self._reachable = True

    def submit(self, outcome: Outcome) -> None:
        """Keep the outcome on disk and have it sent soon; returns at once."""
        self._outbox.append(outcome)
        self._wake.set()

    def run(self, stop: Event) -> None:
        """Deliver until `stop` is set, then once more what is left; web being down only makes the pauses longer."""
        pause = FIRST_PAUSE_S
        while not stop.is_set():
            self._wake.clear()
            if self._try():
                pause = FIRST_PAUSE_S
                self._wake.wait(MAX_PAUSE_S)
            else:
                stop.wait(pause)
                pause = min(pause * 2, MAX_PAUSE_S)
        self._try()

    def stop(self, stop: Event) -> None:
        """Set `stop` and wake the thread."""
        stop.set()
        self._wake.set()

    def deliver(self) -> bool:
        """Send what waits; False when web is away and something is left."""
        for path, body in self._outbox.pending():
            try:
                self._web.outcome(body)
            except WebRefusedError:
                _log.exception("web refused an outcome for ever: %s", json.dumps(body))
            except WebError as error:
                self._note(reachable=False, why=str(error))
                return False
            self._outbox.done(path)
            self._note(reachable=True, why="")
        return True

    def _try(self) -> bool:
        """As `deliver`; a disk that fails for a while must not end the thread."""
        try:
            return self.deliver()
        except OSError:
            _log.exception("the outbox can't be read or cleared")
            return False

    def _note(self, *, reachable: bool, why: str) -> None:
        if reachable != self._reachable:
            _log.warning("outcomes %s", "are delivered again" if reachable else f"wait on disk: {why}")
        self._reachable = reachable
