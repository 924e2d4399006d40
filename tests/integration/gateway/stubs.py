"""An engine and a control plane whose every byte and pause a test decides, and the writing side of the database."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, LiteralString

import psycopg
import uvicorn
from psycopg import sql

from gateway.app import App
from gateway.routing.snapshot import Row
from gateway.wire.asgi import Message, Receive, Scope, Send
from tests.unit.gateway.worlds import World

Answer = Callable[[dict[str, Any], Send], Awaitable[None]]


@asynccontextmanager
async def serving(app: Any, *, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[str]:
    """Serve a gateway, or an ASGI application, on a free loopback port; gives its URL."""
    # With the protocol named, asyncio turns off Nagle's algorithm on what it accepts: else each answer takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    http: Any = app.reception if isinstance(app, App) else "httptools"
    config = uvicorn.Config(app, http=http, ws="none", log_config=None, lifespan=lifespan, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve(sockets=[listener]))
    while not server.started:
        if task.done():
            await task
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        # Nothing that a stub still does is worth waiting for.
        server.force_exit = lifespan == "off"
        await task


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 5.0, pause_s: float = 0.02) -> float:
    """Look again and again until the condition holds; the seconds that it took."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110  what is waited for is in another process or database
            await asyncio.sleep(pause_s)
    return time.monotonic() - began


async def read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def start(send: Send, *, status: int = 200, media: str = "application/json") -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", media.encode())]})


async def part(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def whole(send: Send, document: object, *, status: int = 200) -> None:
    await start(send, status=status)
    await part(send, json.dumps(document).encode(), more=False)


async def tell_model(body: dict[str, Any], send: Send) -> None:
    """A well-behaved engine: says which model it was asked for, streaming or not."""
    usage = {"prompt_tokens": 2, "completion_tokens": 3}
    document = {"model": body["model"], "choices": [], "usage": usage}
    if not body.get("stream"):
        await whole(send, document)
        return
    await start(send, media="text/event-stream; charset=utf-8")
    await part(send, f"data: {json.dumps(document)}\n\n".encode())
    await part(send, b"data: [DONE]\n\n", more=False)


@dataclass(slots=True)
class StubEngine:
    """Answers completions by `answer`; tells when a request was cancelled by its client."""

    answer: Answer = tell_model
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            await whole(send, {})  # /health
            return
        body = json.loads(await read(receive))
        self.bodies.append(body)
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        work = asyncio.create_task(self._work(body, send))
        gone = asyncio.create_task(self._watch(receive))
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            self.cancelled.set()
        work.cancel()
        gone.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)

    async def _work(self, body: dict[str, Any], send: Send) -> None:
        await self.answer(body, send)

    async def _watch(self, receive: Receive) -> Message:
        return await receive()


@dataclass(slots=True)
class Plane:
    """Answers demands with `state`; `on_demand` is called before each answer."""

    state: str = "loading"
    status: int = 202
    url: str = ""
    demands: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    on_demand: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.demands.append(json.loads(await read(receive)))
        self.authorizations.append(dict(scope["headers"])[b"authorization"].decode())
        assert (scope["method"], scope["path"]) == ("POST", "/api/v1/demand")
        if self.on_demand is not None:
            await self.on_demand()
        await whole(send, {"state": self.state, "message": "as the test wants"}, status=self.status)


@dataclass(slots=True)
class Routing:
    """The registry's side of the database: changes facts, notifies or doesn't, goes away and comes back."""

    connection: psycopg.AsyncConnection[Row]
    database: str
    gateway_url: str

    async def put(self, world: World) -> None:
        tables = {
            "routing_aliases": world.aliases,
            "routing_versions": world.versions,
            "routing_nodes": world.nodes,
            "routing_residencies": world.residencies,
            "routing_tokens": world.tokens,
            "routing_rules": world.rules,
            "routing_cold_rules": world.cold_rules,
        }
        async with self.connection.transaction():
            for table, rows in tables.items():
                await self._replace(table, rows)
            await self.notify()

    async def set_nodes(self, *rows: Row) -> None:
        await self._change("routing_nodes", rows)

    async def set_residencies(self, *rows: Row, notify: bool = True) -> None:
        await self._change("routing_residencies", rows, notify=notify)

    async def set_versions(self, *rows: Row, notify: bool = True) -> None:
        await self._change("routing_versions", rows, notify=notify)

    async def set_aliases(self, *rows: Row, notify: bool = True) -> None:
        await self._change("routing_aliases", rows, notify=notify)

    async def notify(self) -> None:
        await self.connection.execute("NOTIFY lorekeeper_routing, 'test'")

    async def records(self) -> list[dict[str, Any]]:
        cursor = await self.connection.execute("SELECT * FROM gateway_request ORDER BY id")
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    async def records_until(self, count: int, *, seconds: float = 5.0) -> list[dict[str, Any]]:
        async def are_there() -> bool:
            return len(await self.records()) >= count

        await until(are_there, seconds=seconds)
        return await self.records()

    async def go_away(self) -> None:
        """Cut off the gateway and refuse it, as a database that is down does."""
        await self._let("REVOKE CONNECT ON DATABASE {} FROM PUBLIC")
        await self.connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename = 'lorekeeper_gateway' AND datname = current_database()"
        )

    async def come_back(self) -> None:
        await self._let("GRANT CONNECT ON DATABASE {} TO PUBLIC")

    async def _let(self, statement: LiteralString) -> None:
        await self.connection.execute(sql.SQL(statement).format(sql.Identifier(self.database)))

    async def _change(self, table: str, rows: tuple[Row, ...], *, notify: bool = True) -> None:
        async with self.connection.transaction():
            await self._replace(table, list(rows))
            if notify:
                await self.notify()

    async def _replace(self, table: str, rows: list[Row]) -> None:
        await self.connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        for row in rows:
            places = sql.SQL(", ").join([sql.Placeholder()] * len(row))
            await self.connection.execute(
                sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(table), places), row
            )
