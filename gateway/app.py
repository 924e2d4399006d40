"""The ASGI application: the parts of a gateway started, joined and stopped."""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx

from gateway.cold import ColdLoads
from gateway.completions import CompletionPath, is_warm
from gateway.demand import HttpDemand
from gateway.records import RecordWriter
from gateway.routing.absences import Absences
from gateway.routing.current import CurrentSnapshot
from gateway.routing.source import SnapshotSource
from gateway.service import Service
from gateway.settings import Settings
from gateway.upstream.httpx_client import HttpxUpstream, engine_client
from gateway.wire.asgi import Receive, Request, Scope, Send
from gateway.wire.body import BodyLimits

_log = logging.getLogger(__name__)

_WEB_TIMEOUT_S = 5.0
_LAST_FLUSH_S = 3.0

App = Callable[[Scope, Receive, Send], Awaitable[None]]


def create_app(settings: Settings) -> App:
    """An ASGI application that runs one gateway between lifespan start and stop."""
    running: list[Service] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(settings, running, receive, send)
        else:
            await running[0].handle(Request.from_scope(scope, receive), send)

    return app


async def _live(settings: Settings, running: list[Service], receive: Receive, send: Send) -> None:
    await receive()
    async with run_service(settings) as service:
        running.append(service)
        await send({"type": "lifespan.startup.complete"})
        await receive()
    running.clear()
    await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def run_service(settings: Settings) -> AsyncIterator[Service]:
    """A service with its background work; the records still queued are written when it ends."""
    current, absences = CurrentSnapshot(), Absences()
    source = SnapshotSource(database_url=settings.database_url, poll_s=settings.snapshot_poll_s, current=current)
    records = RecordWriter(
        database_url=settings.database_url, bound=settings.record_bound, flush_s=settings.record_flush_s
    )
    async with (
        engine_client(connections=settings.upstream_connections, silence_s=settings.upstream_timeout_s) as engines,
        httpx.AsyncClient(timeout=_WEB_TIMEOUT_S, trust_env=False) as web,
    ):
        cold = ColdLoads(
            demand=HttpDemand(client=web, web_url=settings.web_url, token=settings.gateway_token),
            current=current,
            is_warm=functools.partial(is_warm, current, absences),
            max_waiting=settings.max_waiting,
            max_waiting_each=settings.max_waiting_each,
        )
        path = CompletionPath(
            current=current,
            absences=absences,
            cold=cold,
            upstream=HttpxUpstream(engines),
            cold_wait_s=settings.cold_wait_s,
        )
        async with _background(source.run(), records.run()) as is_alive:
            yield Service(
                current=current,
                path=path,
                cold=cold,
                records=records,
                limits=BodyLimits(settings.max_body_bytes, settings.max_json_depth, settings.body_timeout_s),
                is_alive=is_alive,
            )
        await records.flush(timeout_s=_LAST_FLUSH_S)


@asynccontextmanager
async def _background(*works: Awaitable[None]) -> AsyncIterator[Callable[[], bool]]:
    tasks = [asyncio.ensure_future(work) for work in works]
    for task in tasks:
        task.add_done_callback(_tell_if_failed)
    try:
        yield lambda: not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell_if_failed(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("background work stopped", exc_info=task.exception())
