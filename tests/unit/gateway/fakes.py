"""An engine in memory behind the upstream port, and a client that keeps what it's sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.errors import EngineBroken, GatewayError
from gateway.upstream.ports import EngineAnswer, EngineCall
from gateway.wire.asgi import Message, Responder

JSON_MEDIA = {"content-type": "application/json"}
SSE_MEDIA = {"content-type": "text/event-stream; charset=utf-8"}


def answer(
    *chunks: bytes, status: int = 200, headers: Mapping[str, str] = JSON_MEDIA, breaks: bool = False
) -> EngineAnswer:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        if breaks:
            raise EngineBroken("broken")

    return EngineAnswer(status=status, headers=headers, chunks=stream())


def said_by(model: str) -> EngineAnswer:
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    return answer(json.dumps({"model": model, "choices": [], "usage": usage}).encode())


@dataclass(slots=True)
class FakeUpstream:
    """Answers each call by the next of `script` (an answer or an error), or by `default` when that's empty."""

    default: Callable[[EngineCall], EngineAnswer | GatewayError]
    script: list[EngineAnswer | GatewayError] = field(default_factory=list)
    calls: list[EngineCall] = field(default_factory=list)
    open_now: int = 0
    takes_s: float = 0.0

    @asynccontextmanager
    async def open(self, call: EngineCall) -> AsyncIterator[EngineAnswer]:
        self.calls.append(call)
        await asyncio.sleep(self.takes_s)
        result = self.script.pop(0) if self.script else self.default(call)
        if isinstance(result, GatewayError):
            raise result
        self.open_now += 1
        try:
            yield result
        finally:
            self.open_now -= 1


@dataclass(slots=True)
class Client:
    """What a client received."""

    sent: list[Message] = field(default_factory=list)

    def responder(self) -> Responder:
        async def send(message: Message) -> None:
            self.sent.append(message)

        return Responder(send, request_id="req-1")

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def complete(self) -> bool:
        return len(self.sent) > 1 and not self.sent[-1]["more_body"]
