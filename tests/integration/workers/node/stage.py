"""The world around an agent's process: a web and a store on loopback, and the process itself."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import uvicorn

ROOT = Path(__file__).resolve().parents[4]


@dataclass
class LocalWeb:
    """Web's two doors and a store at `/store/<sha256>`; `down` refuses reports, `slow_s` delays each download."""

    objects: dict[str, bytes] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)
    down: bool = False
    slow_s: float = 0.0
    downloads: int = 0

    def __post_init__(self) -> None:
        config = uvicorn.Config(self, host="127.0.0.1", port=0, log_level="warning", lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, answer = self._answer(scope["path"], body)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        if path.startswith("/store/"):
            self.downloads += 1
            time.sleep(self.slow_s)
            data = self.objects.get(path.rpartition("/")[2])
            return (404, b"") if data is None else (200, data)
        if self.down:
            return 503, b""
        if path == "/api/v1/node/outcomes":
            self.outcomes.append(json.loads(body))
            return 200, json.dumps({"ok": True}).encode()
        assert path == "/api/v1/node/report"
        return 200, json.dumps({"ok": True, "unknown": self.unknown, **self._take(json.loads(body))}).encode()

    def _take(self, report: dict[str, Any]) -> dict[str, Any]:
        """Complete what is left out as unchanged by the report before; ask for the whole if there is none."""
        if report["unchanged"]:
            if not self.reports:
                return {"resend": True}
            report = {**{name: self.reports[-1][name] for name in ("loaded", "on_disk")}, **report}
        self.reports.append(report)
        return self.answer

    def kinds(self) -> list[str]:
        return [outcome["outcome"] for outcome in self.outcomes]


class AgentProcess:
    """`python -m workers.node` with this environment; killed at the end if need be."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workers.node"],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], **env},
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def terminate(self) -> int:
        self.process.terminate()
        return self.process.wait(20)

    def text(self) -> str:
        return self._log.read_text()


def wait_until(condition: Callable[[], object], *, timeout_s: float = 20.0, what: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come to pass in {timeout_s} s\n{what()}")
        time.sleep(0.02)
