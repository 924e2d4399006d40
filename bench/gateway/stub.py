"""``python -m bench.gateway.stub``: a fleet of engines in one process, one port each, that answer at once.

The ports are printed as a JSON list. An answer's text is the model's name backwards, so that whoever asked can tell
which name reached the engine whatever was done to the names in the answer. A stream has a chunk every 5 ms, the first
after 5 ms too. ``POST /bench/MODE`` makes one engine misbehave (see ``Mode``) until it is told ``sound``.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import functools
import gc
import json
import re
import sys
from dataclasses import dataclass
from typing import cast

import httptools
import uvloop

LOOPBACK = "127.0.0.1"
TOKENS = 60
PACE_S = 0.005

_MODEL = re.compile(rb'"model":\s*"([^"]*)"')
_STREAM = re.compile(rb'"stream":\s*true')
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_DOCUMENT = (
    b'{"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion","created":1764460800,"model":"%b",'
    b'"choices":[{"index":0,"message":{"role":"assistant","content":"%b","refusal":null,"tool_calls":[]},'
    b'"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":36,"total_tokens":48,'
    b'"completion_tokens":12,"prompt_tokens_details":null},"prompt_logprobs":null}'
)
_EVENT = (
    b'data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1764460800,'
    b'"model":"%b","choices":[{"index":0,"delta":{"content":"%b"},"logprobs":null,"finish_reason":%b}]}\n\n'
)


class Mode(enum.StrEnum):
    """How an engine answers completions."""

    SOUND = "sound"
    HANG = "hang"  # never
    HALF = "half"  # the first chunks of a stream or the first half of a document, then the connection ends
    FAIL = "fail"  # 500
    LIE = "lie"  # in the name of another model
    DROP = "drop"  # the connection ends without a byte


@dataclass(slots=True)
class Engine:
    """One engine's state: its mode, and how many completions came."""

    mode: Mode = Mode.SOUND
    asked: int = 0


class Http(asyncio.Protocol):
    """One connection to an engine."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine, self._loop = engine, loop
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are no subclass of it.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def on_message_begin(self) -> None:
        self._url = self._body = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._url.endswith(b"/completions"):
            self._complete()
        elif self._engine.mode is not Mode.HANG or self._url.startswith(b"/bench/"):
            self._answer(b"200 OK", self._other())

    def _other(self) -> bytes:
        """Health and lists for those who ask before they route; the bench's own switch."""
        if self._url.startswith(b"/bench/"):
            self._engine.mode = Mode(self._url.removeprefix(b"/bench/").decode())
        return b'{"object":"list","data":[{"id":"bench","object":"model"}],"asked":%d}' % self._engine.asked

    def _complete(self) -> None:
        engine = self._engine
        engine.asked += 1
        found = _MODEL.search(self._body)
        model = found[1] if found else b""
        mode = engine.mode
        if mode is Mode.HANG:
            return
        if mode is Mode.DROP:
            self._transport.close()
            return
        if mode is Mode.FAIL:
            self._answer(b"500 Internal Server Error", b'{"error":{"message":"broken","code":500}}')
            return
        text, named = model[::-1], b"somebody-else" if mode is Mode.LIE else model
        if _STREAM.search(self._body):
            self._stream(named, text, tokens=3 if mode is Mode.HALF else TOKENS)
        else:
            self._answer(b"200 OK", _DOCUMENT % (named, text), is_half=mode is Mode.HALF)

    def _answer(self, status: bytes, body: bytes, *, is_half: bool = False) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
        if is_half:
            self._transport.write(head + body[: len(body) // 2])
            self._transport.close()
        else:
            self._transport.write(head + body)

    def _stream(self, model: bytes, text: bytes, *, tokens: int) -> None:
        is_half = tokens < TOKENS
        first, middle, last = (
            _chunked(_EVENT % (model, word, reason))
            for word, reason in ((text, b"null"), (b" token", b"null"), (b"", b'"stop"'))
        )
        end = last + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        sent, due = 0, self._loop.time()

        def step() -> None:
            nonlocal sent, due
            sent += 1
            if sent < tokens:
                self._transport.write(_STREAM_HEAD + first if sent == 1 else middle)
                due += PACE_S
                self._timer = self._loop.call_at(due, step)
            elif is_half:
                self._transport.close()
            else:
                self._transport.write(end)

        due += PACE_S
        self._timer = self._loop.call_at(due, step)


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _serve(count: int) -> None:
    loop = asyncio.get_running_loop()
    factories = [functools.partial(Http, Engine(), loop) for _number in range(count)]
    servers = [await loop.create_server(factory, LOOPBACK, 0, backlog=1024) for factory in factories]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    gc.freeze()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway.stub")
    parser.add_argument("--engines", type=int, default=1)
    uvloop.run(_serve(parser.parse_args().engines))


if __name__ == "__main__":
    main()
