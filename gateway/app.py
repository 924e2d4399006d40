"""The ASGI application: the parts of a gateway started, joined and stopped."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx

from gateway.demand import HttpDemand
from gateway.feedback import Feedback
from gateway.limits import TenantLimits
from gateway.metrics.board import Board
from gateway.metrics.pages import Pages
from gateway.nodes.health import CHECKS_AT_ONCE, HealthChecks
from gateway.path.joining import Joined, PathLimits, join_path
from gateway.records import RecordWriter, Spool
from gateway.routing.absences import Absences
from gateway.routing.current import CurrentSnapshot
from gateway.routing.disk import DiskCopy
from gateway.routing.source import SnapshotSource
from gateway.service import Service
from gateway.settings import Settings
from gateway.shadow.mirror import Budget
from gateway.spans.sender import Spans
from gateway.upstream.llhttp import llhttp_upstream
from gateway.upstream.pool import PoolLimits
from gateway.upstream.ports import Upstream
from gateway.wire.asgi import Receive, Scope, Send
from gateway.wire.body import BodyLimits
from gateway.wire.connection import Request
from gateway.wire.protocol import Reception

_log = logging.getLogger(__name__)

_WEB_TIMEOUT_S = 5.0
_LAST_FLUSH_S = 3.0
_COLLECT_AFTER = 20_000


@dataclass(slots=True)
class Lifecycle:
    """What the server knows and the application tells: whether the end has come."""

    is_draining: bool = False


class App:
    """One gateway that runs between ASGI's lifespan start and stop; requests come through its `reception`."""

    def __init__(self, service_of: AbstractAsyncContextManager[Service]) -> None:
        """Run this service."""
        self._service_of = service_of
        self._service: Service
        self.reception = Reception(self._handle)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI: the lifespan."""
        if scope["type"] != "lifespan":
            message = f"nothing but a lifespan comes this way, no {scope['type']}"
            raise ValueError(message)
        await receive()
        async with self._service_of as self._service:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _handle(self, request: Request) -> Coroutine[Any, None, None]:
        return self._service.handle(request)


def create_app(
    settings: Settings, lifecycle: Lifecycle | None = None, *, place: tuple[int, Pages] | None = None
) -> App:
    """A gateway for uvicorn to run.

    `place` is its number among the processes behind one port, and the pages that they share.
    """
    return App(run_service(settings, lifecycle or Lifecycle(), place=place))


@asynccontextmanager
async def run_service(
    settings: Settings, lifecycle: Lifecycle, *, place: tuple[int, Pages] | None = None
) -> AsyncIterator[Service]:
    """A service with its background work; the records still queued are written when it ends."""
    current, absences = CurrentSnapshot(), Absences()
    source = SnapshotSource(
        database_url=settings.database_url,
        poll_s=settings.snapshot_poll_s,
        current=current,
        copy=disk_copy(settings),
    )
    records, tenants = record_writer(settings), TenantLimits(processes=settings.processes)
    feedback = Feedback(records, per_minute=settings.feedback_per_minute, processes=settings.processes)
    async with (
        engine_client(settings, connections=settings.upstream_connections) as engines,
        # Of its own: where engines that hang have all connections, every other engine would seem to hang as well.
        engine_client(settings, connections=CHECKS_AT_ONCE) as health_client,
        httpx.AsyncClient(timeout=_WEB_TIMEOUT_S, trust_env=False) as web,
    ):
        joined = join_path(
            path_limits(settings),
            current=current,
            absences=absences,
            demand=HttpDemand(client=web, web_url=settings.web_url, token=settings.gateway_token),
            upstream=engines,
            records=records,
            tenants=tenants,
        )
        health = HealthChecks(current=current, fleet=joined.fleet, limits=tenants, upstream=health_client)
        spans = None if settings.traces is None else Spans(settings.traces, adapter_of=_adapter_of(current))
        board = figures_board(settings, current, joined, records, feedback, spans=spans, place=place)
        works = [source.run(), records.run(), health.run(), board.run(), _freeze_when_ready(current)]
        async with _background(*works, *([] if spans is None else [spans.run()])) as is_alive:
            yield Service(
                current=current,
                path=joined.path,
                records=records,
                feedback=feedback,
                limits=BodyLimits(settings.max_body_bytes, settings.max_json_depth, settings.body_timeout_s),
                is_alive=is_alive,
                facts=joined.facts,
                board=board,
                is_draining=lambda: lifecycle.is_draining,
                spans=spans,
            )
        if spans is not None:
            await spans.close(timeout_s=_LAST_FLUSH_S)
        await joined.mirror.close()
        await records.flush(timeout_s=_LAST_FLUSH_S)


def engine_client(settings: Settings, *, connections: int) -> AbstractAsyncContextManager[Upstream]:
    """A client that calls engines, as the settings say which."""
    limits = PoolLimits(connections=connections, silence_s=settings.upstream_timeout_s)
    if settings.client == "aiohttp":
        # Only who wants it pays for it: it's 15 MB and a second of the start.
        from gateway.upstream.aiohttp_client import aiohttp_upstream  # noqa: PLC0415

        return aiohttp_upstream(limits)
    return llhttp_upstream(limits)


def path_limits(settings: Settings) -> PathLimits:
    """What the settings say of waiting, of shadows and of second calls."""
    return PathLimits(
        cold_wait_s=settings.cold_wait_s,
        max_waiting=settings.max_waiting,
        max_waiting_each=settings.max_waiting_each,
        shadows=Budget(most=settings.shadows, of_node=settings.shadow_share),
        hedging=settings.hedging,
    )


def disk_copy(settings: Settings) -> DiskCopy | None:
    """The copy of the routing data that is served from while the database is away, if there is a folder for it."""
    folder = settings.state_folder
    return None if folder is None else DiskCopy(folder, database_url=settings.database_url)


def figures_board(
    settings: Settings,
    current: CurrentSnapshot,
    joined: Joined,
    records: RecordWriter,
    feedback: Feedback,
    *,
    spans: Spans | None,
    place: tuple[int, Pages] | None,
) -> Board:
    """The figures of this process."""

    def gauges() -> dict[str, float]:
        facts = {name: value for name, value in joined.facts().items() if isinstance(value, int | float)}
        return {
            **facts,
            **_figures_of(spans),
            "snapshot_age_seconds": current.age_s or 0.0,
            "records_pending": records.pending,
            "records_dropped": records.dropped,
            "records_spooled_bytes": records.spooled_bytes,
            "marks": feedback.taken,
            "processes": 1,
        }

    return Board(
        token=settings.metrics_token,
        adapter_of=_adapter_of(current),
        gauges=gauges,
        breakers=joined.fleet.breaker_states,
        place=place,
    )


def _adapter_of(current: CurrentSnapshot) -> Callable[[UUID], str | None]:
    def adapter_of(version_id: UUID) -> str | None:
        version = current.get().versions.get(version_id)
        return None if version is None else version.adapter

    return adapter_of


def _figures_of(spans: Spans | None) -> dict[str, float]:
    if spans is None:
        return {}
    return {"spans_sent": spans.sent, "spans_dropped": spans.dropped, "spans_pending": spans.pending}


def record_writer(settings: Settings) -> RecordWriter:
    """The writer of request records, with a spool if there is a folder for it."""
    folder = settings.state_folder
    return RecordWriter(
        database_url=settings.database_url,
        bound=settings.record_bound,
        flush_s=settings.record_flush_s,
        spool=None if folder is None else Spool(folder / "spool", bound_bytes=settings.spool_bytes),
    )


@asynccontextmanager
async def _background(*works: Awaitable[None]) -> AsyncIterator[Callable[[], bool]]:
    tasks = [asyncio.ensure_future(work) for work in works]
    for task in tasks:
        task.add_done_callback(_tell_if_failed)
    try:
        yield lambda: not any(_has_failed(task) for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _has_failed(task: asyncio.Future[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _freeze_when_ready(current: CurrentSnapshot) -> None:
    """Take what is there, once all is read, out of the collector's sight: looking through it takes 50 ms and more."""
    while not current.is_ready:
        await current.change()
    gc.collect()
    gc.freeze()
    # Requests leave no cycles behind: looking for some among every 700 objects finds nothing and costs 4%.
    gc.set_threshold(_COLLECT_AFTER, 10, 10)


def _tell_if_failed(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("background work stopped", exc_info=task.exception())
