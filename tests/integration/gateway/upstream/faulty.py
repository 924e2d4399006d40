"""An engine's end of a connection, byte by byte: a test says what is sent, and when the connection ends."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.upstream.ports import EngineCall, Upstream

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
MOST = 1_000_000
AB = OK + b"content-length: 2\r\n\r\nab"


@dataclass(slots=True)
class Conversation:
    """One request on a connection, and the way to answer it."""

    head: bytes
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    connection: int

    async def say(self, *parts: bytes, pause_s: float = 0.005) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(pause_s)

    async def hang_up(self, *, hard: bool = False) -> None:
        if hard:
            self.writer.transport.abort()
        else:
            self.writer.close()
        raise ConnectionAbortedError

    async def is_left(self) -> bool:
        """Wait for the other end to close the connection."""
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(self.reader.read(1), 5) == b""
        return True


Script = Callable[[Conversation], Awaitable[None]]


async def say_ab(conversation: Conversation) -> None:
    await conversation.say(AB, pause_s=0)


def saying(*parts: bytes, ends: bool = False, pause_s: float = 0.005) -> Script:
    async def say(conversation: Conversation) -> None:
        await conversation.say(*parts, pause_s=pause_s)
        if ends:
            await conversation.hang_up()

    return say


@dataclass(slots=True)
class FaultyEngine:
    """Answers each request by the next of `scripts`, or with "ab" when there is none left."""

    scripts: list[Script] = field(default_factory=list)
    url: str = ""
    requests: list[Conversation] = field(default_factory=list)
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def call(self, body: bytes = b"{}", **headers: str) -> EngineCall:
        return EngineCall(self.url, "/v1/completions", {"content-type": "application/json", **headers}, body)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                (length,) = re.findall(rb"(?i)\r\ncontent-length: (\d+)\r\n", head)
                conversation = Conversation(head, await reader.readexactly(int(length)), reader, writer, number)
                self.requests.append(conversation)
                await (self.scripts.pop(0) if self.scripts else say_ab)(conversation)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def faulty_engine(*scripts: Script) -> AsyncIterator[FaultyEngine]:
    engine = FaultyEngine(list(scripts))
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0)
    engine.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield engine
    finally:
        server.close()
        for writer in engine.writers:
            writer.transport.abort()
        await asyncio.sleep(0.001)


async def asked(upstream: Upstream, engine: FaultyEngine) -> bytes:
    answer = await upstream.send(engine.call())
    try:
        return await answer.whole(MOST)
    finally:
        answer.close()
