"""Routes, and the frame around each request: its id, its errors, its record."""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from gateway.completions import CompletionPath
from gateway.errors import ClientGone, EngineFault, GatewayError, MethodNotAllowed, NotAuthenticated, RouteNotFound
from gateway.feedback import LONGEST_BODY, Feedback, mark_document
from gateway.listing import model_document, model_list
from gateway.metrics.board import Board
from gateway.path.targets import Ask
from gateway.records import RecordWriter
from gateway.routing.authenticate import authenticate
from gateway.routing.current import CurrentSnapshot
from gateway.spans.sender import Spans
from gateway.surface.endpoints import ENDPOINTS, Endpoint
from gateway.surface.fields import check_fields
from gateway.surface.session import session_key
from gateway.trace import Trace
from gateway.wire.body import BodyLimits, check_media, parse_json_object, wait_for_body, whole_body
from gateway.wire.connection import Request, Responder
from gateway.wire.replies import send_error, send_json

_log = logging.getLogger(__name__)

_MODELS: Final = "/v1/models"
_FEEDBACK: Final = "/v1/feedback"
_ACCEPTED: Final = 202
_CLIENT_GONE_STATUS: Final = 499
_CLIENT_GONE: Final = "client_gone"
_FAILED: Final = "The gateway failed to answer."

Handler = Callable[[Request, Responder], Awaitable[None]]
Facts = Callable[[], Mapping[str, object]]


class Service:
    """Answers HTTP requests with the parts of a running gateway."""

    def __init__(
        self,
        *,
        current: CurrentSnapshot,
        path: CompletionPath,
        records: RecordWriter,
        feedback: Feedback,
        limits: BodyLimits,
        is_alive: Callable[[], bool],
        facts: Facts,
        board: Board,
        is_draining: Callable[[], bool],
        spans: Spans | None = None,
    ) -> None:
        """`is_alive` says whether the background work goes on; `facts` is what `/readyz` tells beside its own.

        While it `is_draining`, `/readyz` says no and everything else goes on.
        """
        self._current = current
        self._path = path
        self._records = records
        self._feedback = feedback
        self._limits = limits
        self._mark_limits = replace(limits, max_bytes=min(limits.max_bytes, LONGEST_BODY))
        self._is_alive = is_alive
        self._facts = facts
        self._board = board
        self._is_draining = is_draining
        self._spans = spans
        # A random beginning for the process and a count within it: unique, and a fraction of what a UUID costs.
        self._id_prefix = f"req-{secrets.token_hex(10)}"
        self._ids = itertools.count(1)
        self._routes: dict[str, tuple[str, Handler]] = {
            _MODELS: ("GET", self._list_models),
            _FEEDBACK: ("POST", self._take_mark),
            "/healthz": ("GET", self._health),
            "/readyz": ("GET", self._readiness),
            "/metrics": ("GET", self._metrics),
        }

    def handle(self, request: Request) -> Coroutine[Any, None, None]:
        """Answer one request; whatever goes wrong becomes an answer, or a broken connection once bytes have left."""
        request_id = f"{self._id_prefix}{next(self._ids):08x}"
        responder = Responder(request.connection, request_id=request_id)
        endpoint = ENDPOINTS.get(request.path)
        if endpoint is not None and request.method == "POST":
            return self._answer(endpoint, request, Trace(request_id, path=endpoint.name), responder)
        return self._tell(request, request_id, responder)

    async def _tell(self, request: Request, request_id: str, responder: Responder) -> None:
        try:
            await self._handler(request)(request, responder)
        except ClientGone:
            _log.debug("%s: the client left", request_id)
        except GatewayError as error:
            await _refuse(error, responder)
        except Exception:  # noqa: BLE001 - as below
            _log.exception("%s failed", request_id)
            await _refuse(GatewayError(_FAILED), responder)

    async def _answer(self, endpoint: Endpoint, request: Request, trace: Trace, responder: Responder) -> None:
        status, kind = None, "cancelled"
        try:
            trace.tenant = self._tenant(request, trace.at)
            headers = request.headers if self._spans is None else self._spans.begin(trace, request.headers)
            check_media(request)
            limits = self._limits
            raw = whole_body(request, limits) if request.is_whole else await wait_for_body(request, limits)
            body = parse_json_object(raw, max_depth=limits.max_depth)
            check_fields(body, endpoint)
            trace.stream = body.get("stream") is True
            ask = Ask(endpoint, headers, body, len(raw), session_key(headers, body))
            await self._path.serve(ask, trace=trace, responder=responder)
            kind = ""
        except ClientGone:
            status, kind = _CLIENT_GONE_STATUS, _CLIENT_GONE
        except asyncio.CancelledError:
            if not request.connection.is_gone:
                raise
            status, kind = _CLIENT_GONE_STATUS, _CLIENT_GONE
        except GatewayError as error:
            kind = error.code
            await self._fail(error, trace, responder)
        except Exception:  # noqa: BLE001 - the client gets an answer whatever went wrong; the log has the rest
            kind = GatewayError.code
            _log.exception("%s failed", trace.request_id)
            await self._fail(GatewayError(_FAILED), trace, responder)
        finally:
            if trace.tenant:
                record = trace.record(status=status or responder.status or 0, error_kind=kind)
                self._records.add(record)
                self._board.counts.observe(record)
                if self._spans is not None:
                    self._spans.end(trace, record, route=endpoint.path)

    def _handler(self, request: Request) -> Handler:
        route = self._routes.get(request.path)
        if route is None and request.path.startswith(f"{_MODELS}/"):
            route = ("GET", self._show_model)
        if route is None and request.path in ENDPOINTS:
            message = "Use POST for this path."
            raise MethodNotAllowed(message)
        if route is None:
            message = "The gateway has no such path."
            raise RouteNotFound(message)
        method, handler = route
        if request.method != method and (method, request.method) != ("GET", "HEAD"):
            message = f"Use {method} for this path."
            raise MethodNotAllowed(message)
        return handler

    async def _fail(self, error: GatewayError, trace: Trace, responder: Responder) -> None:
        if isinstance(error, EngineFault):
            _log.warning("%s: %s on node %s", trace.request_id, error.code, trace.node)
        # An answer that has begun is left unfinished: the server closes the connection and the client sees the break.
        await _refuse(error, responder)

    async def _list_models(self, request: Request, responder: Responder) -> None:
        await send_json(responder, model_list(self._current.get(), self._tenant(request, datetime.now(UTC))))

    async def _show_model(self, request: Request, responder: Responder) -> None:
        name = request.path.removeprefix(f"{_MODELS}/")
        tenant = self._tenant(request, datetime.now(UTC))
        await send_json(responder, model_document(self._current.get(), tenant, name))

    async def _take_mark(self, request: Request, responder: Responder) -> None:
        at = datetime.now(UTC)
        tenant = self._tenant(request, at)
        check_media(request)
        limits = self._mark_limits
        raw = await wait_for_body(request, limits)
        mark = self._feedback.take(parse_json_object(raw, max_depth=limits.max_depth), tenant=tenant, at=at)
        await send_json(responder, mark_document(mark), status=_ACCEPTED)

    async def _health(self, _: Request, responder: Responder) -> None:
        alive = self._is_alive()
        await send_json(responder, {"status": "ok" if alive else "stopped"}, status=200 if alive else 503)

    async def _readiness(self, _: Request, responder: Responder) -> None:
        draining = self._is_draining()
        ready = self._current.is_ready and not draining
        document: dict[str, object] = {
            "ready": ready,
            "draining": draining,
            "source": self._current.source,
            "snapshot_age_s": self._current.age_s,
            **self._facts(),
            "records_pending": self._records.pending,
            "records_dropped": self._records.dropped,
        }
        await send_json(responder, document, status=200 if ready else 503)

    async def _metrics(self, request: Request, responder: Responder) -> None:
        if not self._board.may_be_seen_by(request.headers.get("authorization")):
            message = "Send the token of LOREKEEPER_GATEWAY_METRICS_TOKEN as 'Authorization: Bearer <token>'."
            raise NotAuthenticated(message)
        page, media = self._board.page(request.headers.get("accept", ""))
        await responder.whole(200, {b"content-type": media}, page)

    def _tenant(self, request: Request, now: datetime) -> str:
        return authenticate(self._current.get(), request.headers.get("authorization"), now=now)


async def _refuse(error: GatewayError, responder: Responder) -> None:
    if responder.started:
        return
    try:
        await send_error(responder, error)
    except ClientGone:
        _log.debug("the client left before it was told of %s", error.code)
