"""An engine in memory behind the upstream port, and a client that keeps what it's sent."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.errors import EngineBroken, GatewayError
from gateway.upstream.ports import EngineAnswer, EngineCall
from gateway.wire.connection import Responder
from tests.unit.gateway.connections import FakeConnection

JSON_MEDIA = {b"content-type": b"application/json"}
SSE_MEDIA = {b"content-type": b"text/event-stream; charset=utf-8"}


@dataclass(slots=True)
class FakeAnswer:
    """An answer that comes in these chunks, and breaks off after them if it `breaks`."""

    status: int
    headers: Mapping[bytes, bytes]
    chunks: list[bytes]
    breaks: bool = False
    on_close: Callable[[], None] = lambda: None
    closed: bool = False

    async def read(self) -> bytes:
        if self.chunks:
            return self.chunks.pop(0)
        if self.breaks:
            raise EngineBroken("broken")
        return b""

    async def forward(self, take: Callable[[bytes], bool]) -> bytes | None:
        while part := await self.read():
            if not take(part):
                return None
        return b""

    async def whole(self, most: int) -> bytes:
        parts = []
        while part := await self.read():
            parts.append(part)
        return b"".join(parts)[:most]

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.on_close()


def answer(
    *chunks: bytes, status: int = 200, headers: Mapping[bytes, bytes] = JSON_MEDIA, breaks: bool = False
) -> FakeAnswer:
    return FakeAnswer(status, headers, list(chunks), breaks)


def said_by(model: str) -> FakeAnswer:
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    return answer(json.dumps({"model": model, "choices": [], "usage": usage}).encode())


@dataclass(slots=True)
class FakeUpstream:
    """Answers each call by the next of `script` (an answer or an error), or by `default` when that's empty."""

    default: Callable[[EngineCall], FakeAnswer | GatewayError]
    script: list[FakeAnswer | GatewayError] = field(default_factory=list)
    calls: list[EngineCall] = field(default_factory=list)
    open_now: int = 0
    takes_s: float = 0.0

    async def send(self, call: EngineCall) -> EngineAnswer:
        self.calls.append(call)
        await asyncio.sleep(self.takes_s)
        result = self.script.pop(0) if self.script else self.default(call)
        if isinstance(result, GatewayError):
            raise result
        self.open_now += 1
        result.on_close = self._closed
        return result

    def _closed(self) -> None:
        self.open_now -= 1


@dataclass(slots=True)
class Client:
    """What a client received."""

    connection: FakeConnection = field(default_factory=FakeConnection)

    def responder(self) -> Responder:
        return Responder(self.connection, request_id="req-1")

    @property
    def sent(self) -> bool:
        return self.connection.status is not None

    @property
    def status(self) -> int | None:
        return self.connection.status

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.connection.headers.items()}

    @property
    def body(self) -> bytes:
        return b"".join(self.connection.parts)

    @property
    def complete(self) -> bool:
        return self.connection.is_complete
