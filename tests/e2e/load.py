"""``python -m tests.e2e.load``: connections that ask again as soon as they are answered, in a process of their own.

Reads a `Plan` as a line of JSON, says ``ready`` once each connection was answered, asks until its standard input ends,
and then writes what was heard, one JSON object for each request in the order of their ends.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import httptools

ROOT = Path(__file__).resolve().parents[2]
_PATH = "/v1/completions"
_VERSION = "x-lorekeeper-version"
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """`connections` ask the gateway at `url` for `model` with `key`."""

    url: str
    key: str
    model: str
    connections: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: when it began and ended (`time.monotonic`, one for all processes), and what came.

    `version` is what the gateway says, `model` what the engine says, `code` the error's; status 0: a broken connection.
    """

    began: float
    ended: float
    status: int
    version: str = ""
    model: str = ""
    code: str = ""


@dataclass(slots=True)
class Heard:
    """What a load has heard, once it's over."""

    answers: list[Answer] = field(default_factory=list)

    @property
    def failed(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.status != 200]

    def begun_after(self, moment: float) -> list[Answer]:
        return [answer for answer in self.answers if answer.began > moment]


@contextmanager
def loaded(plan: Plan) -> Iterator[Heard]:
    """Requests flow while in the block; what was heard is there after it."""
    heard = Heard()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(plan)) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        yield heard
        process.stdin.close()
        heard.answers.extend(Answer(**json.loads(line)) for line in process.stdout)
        assert process.wait(_PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class _Asker(asyncio.Protocol):
    """One connection."""

    def __init__(self, run: "_Run") -> None:
        self._run = run
        self._began: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def _ask(self) -> None:
        if self._run.is_over:
            self._transport.close()
            return
        self._version, self._body = "", b""
        # A parser of its own: httptools' counts what it has seen.
        self._parser = httptools.HttpResponseParser(self)
        self._began = time.monotonic()
        self._transport.write(self._run.request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.decode().lower() == _VERSION:
            self._version = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        document = json.loads(self._body)
        code = str((document.get("error") or {}).get("code", ""))
        self._end(self._parser.get_status_code(), self._version, str(document.get("model", "")), code)
        self._ask()

    def connection_lost(self, _error: Exception | None) -> None:
        if self._began is not None:
            self._end(0)
        self._run.lost()

    def _end(self, status: int, *said: str) -> None:
        assert self._began is not None
        self._run.take(Answer(self._began, time.monotonic(), status, *said))
        self._began = None


class _Run:
    """All connections."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._open = plan.connections
        self._all_closed = asyncio.Event()
        self._answered = asyncio.Event()
        self.request = _request(plan)
        self.is_over = False
        self.answers: list[Answer] = []

    def take(self, answer: Answer) -> None:
        self.answers.append(answer)
        if len(self.answers) >= self._plan.connections:
            self._answered.set()

    def lost(self) -> None:
        self._open -= 1
        if not self._open:
            self._all_closed.set()

    async def run(self) -> Sequence[Answer]:
        loop = asyncio.get_running_loop()
        place = urlsplit(self._plan.url)
        for _ in range(self._plan.connections):
            await loop.create_connection(lambda: _Asker(self), str(place.hostname), place.port or 80)
        await self._answered.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        self.is_over = True
        async with asyncio.timeout(_PATIENCE_S):
            await self._all_closed.wait()
        return self.answers


def _request(plan: Plan) -> bytes:
    body = json.dumps({"model": plan.model, "prompt": "Where is my order?", "max_tokens": 4}).encode()
    head = (
        f"POST {_PATH} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {plan.key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def main() -> None:
    plan = Plan(**json.loads(sys.stdin.readline()))
    answers = asyncio.run(_Run(plan).run())
    sys.stdout.writelines(json.dumps(asdict(answer)) + "\n" for answer in answers)


if __name__ == "__main__":
    main()
