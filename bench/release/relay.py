"""Between gateway and engine: makes single versions slow, failing or worse, known by the name that the engine gets.

The agent asks the engine itself, so that loads and probes are sound: what is wrong shows in answers alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import threading
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

import httptools

from deploy.embedded.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    from bench.release.plan import Plan

_CHUNK = 64 * 1024
_LENGTH = re.compile(rb"(?im)^content-length:\s*(\d+)")
_END = b"\r\n\r\n"
_REFUSAL = b'{"error":{"message":"out of memory","type":"InternalServerError","code":500}}'
# A plain sign of the tokenizer's: the only one that a worse version may say.
_STUTTER = 30


class Fault(StrEnum):
    """What is wrong with a version."""

    SLOW = "slow"  # each answer begins later
    FAILING = "failing"  # a share of the requests is answered with 500
    WORSE = "worse"  # answers stutter: one sign again and again


@dataclass(frozen=True, slots=True)
class _Request:
    """As it came: head with its empty line, and body."""

    head: bytes
    body: bytes

    @property
    def model(self) -> str:
        """Empty where none is asked for."""
        return str(json.loads(self.body).get("model", "")) if self.body else ""

    def stuttering(self) -> _Request:
        """The same, to be answered with one token alone."""
        body = json.dumps({**json.loads(self.body), "allowed_token_ids": [_STUTTER]}).encode()
        return _Request(_LENGTH.sub(b"content-length: %d" % len(body), self.head), body)


class Relay:
    """Relays requests to `upstream`, each on a connection of its own. Runs in a thread.

    Attributes:
        touched: how many requests each fault has been done to, mirrored ones included.

    """

    def __init__(self, plan: Plan) -> None:
        """Choose the port; nothing listens before `with`."""
        self.port = free_port()
        self.upstream: tuple[str, int] = (LOOPBACK, 0)
        self.touched: Counter[Fault] = Counter()
        self._plan = plan
        self._faults: dict[str, Fault] = {}
        self._chance = random.Random(plan.seed)  # noqa: S311  a fault, not a secret
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)

    @property
    def url(self) -> str:
        """Where the gateway is to ask."""
        return f"http://{LOOPBACK}:{self.port}"

    def afflict(self, model: str, fault: Fault | None) -> None:
        """From the next request on, this fault is done to the version that engines know by that name; None: none."""
        if fault is None:
            self._faults.pop(model, None)
        else:
            self._faults[model] = fault

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        listening = asyncio.start_server(self._serve, LOOPBACK, self.port)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Let everything go."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Whatever goes wrong, who asked sees a connection that ends, as with an engine that dies."""
        broken = (OSError, asyncio.IncompleteReadError, httptools.HttpParserError, asyncio.CancelledError)
        with contextlib.closing(writer), contextlib.suppress(*broken):
            while (request := await _read(reader)) is not None:
                await self._answer(request, writer)

    async def _answer(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        fault = self._faults.get(request.model) if self._faults else None
        if fault is Fault.FAILING and self._chance.random() >= self._plan.failing:
            fault = None
        if fault is not None:
            self.touched[fault] += 1
        if fault is Fault.FAILING:
            writer.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: %d\r\n\r\n%b" % (len(_REFUSAL), _REFUSAL))
            return
        if fault is Fault.SLOW:
            await asyncio.sleep(self._plan.slow_s)
        await self._pass_on(request.stuttering() if fault is Fault.WORSE else request, writer)

    async def _pass_on(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self.upstream)
        with contextlib.closing(far_writer):
            far_writer.write(request.head + request.body)
            answer = _Answer()
            while not answer.is_whole:
                data = await far_reader.read(_CHUNK)
                if not data:
                    raise ConnectionResetError
                answer.take(data)
                writer.write(data)
                await writer.drain()


class _Answer:
    """Tells when an answer is whole, whichever way its length is told."""

    def __init__(self) -> None:
        self.is_whole = False
        self._parser = httptools.HttpResponseParser(self)

    def take(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.is_whole = True


async def _read(reader: asyncio.StreamReader) -> _Request | None:
    """The next request of a connection; None at its end."""
    try:
        head = await reader.readuntil(_END)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    length = _LENGTH.search(head)
    return _Request(head, await reader.readexactly(int(length[1])) if length else b"")
