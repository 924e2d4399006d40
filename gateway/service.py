"""Routes, and the frame around each request: its id, its errors, its record."""

import logging
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from gateway.cold import ColdLoads
from gateway.completions import Ask, CompletionPath
from gateway.errors import ClientGone, EngineFault, GatewayError, MethodNotAllowed, RouteNotFound
from gateway.listing import model_document, model_list
from gateway.records import RecordWriter
from gateway.routing.authenticate import authenticate
from gateway.routing.current import CurrentSnapshot
from gateway.trace import Trace
from gateway.wire.asgi import Request, Responder, Send
from gateway.wire.body import BodyLimits, read_json_object
from gateway.wire.replies import send_error, send_json
from gateway.wire.watch import until_gone

_log = logging.getLogger(__name__)

_MODELS = "/v1/models"
_CLIENT_GONE_STATUS = 499

Handler = Callable[[Request, Trace, Responder], Awaitable[None]]


class Service:
    """Answers HTTP requests with the parts of a running gateway."""

    def __init__(
        self,
        *,
        current: CurrentSnapshot,
        path: CompletionPath,
        cold: ColdLoads,
        records: RecordWriter,
        limits: BodyLimits,
        is_alive: Callable[[], bool],
    ) -> None:
        """`is_alive` says whether the background work goes on."""
        self._current = current
        self._path = path
        self._cold = cold
        self._records = records
        self._limits = limits
        self._is_alive = is_alive
        self._routes: dict[str, tuple[str, Handler]] = {
            "/v1/chat/completions": ("POST", self._complete),
            "/v1/completions": ("POST", self._complete),
            _MODELS: ("GET", self._list_models),
            "/healthz": ("GET", self._health),
            "/readyz": ("GET", self._readiness),
        }

    async def handle(self, request: Request, send: Send) -> None:
        """Answer one request; whatever goes wrong becomes an answer, or a broken connection once bytes have left."""
        trace = Trace(request_id=f"req-{uuid.uuid4().hex}")
        responder = Responder(send, request_id=trace.request_id)
        status, kind = None, "cancelled"
        try:
            await self._handler(request)(request, trace, responder)
            kind = ""
        except ClientGone:
            status, kind = _CLIENT_GONE_STATUS, "client_gone"
        except GatewayError as error:
            kind = error.code
            await self._fail(error, trace, responder)
        except Exception:  # noqa: BLE001 - the client gets an answer whatever went wrong; the log has the rest
            kind = GatewayError.code
            _log.exception("%s failed", trace.request_id)
            await self._fail(GatewayError("The gateway failed to answer."), trace, responder)
        finally:
            if trace.tenant:
                self._records.add(trace.record(status=status or responder.status or 0, error_kind=kind))

    def _handler(self, request: Request) -> Handler:
        route = self._routes.get(request.path)
        if route is None and request.path.startswith(f"{_MODELS}/"):
            route = ("GET", self._show_model)
        if route is None:
            message = "The gateway has no such path."
            raise RouteNotFound(message)
        method, handler = route
        if request.method not in (method, "HEAD" if method == "GET" else method):
            message = f"Use {method} for this path."
            raise MethodNotAllowed(message)
        return handler

    async def _fail(self, error: GatewayError, trace: Trace, responder: Responder) -> None:
        if isinstance(error, EngineFault):
            _log.warning("%s: %s on node %s", trace.request_id, error.code, trace.node)
        if not responder.started:
            await send_error(responder, error)
        # Otherwise the answer is left unfinished: the server closes the connection and the client sees the break.

    async def _complete(self, request: Request, trace: Trace, responder: Responder) -> None:
        trace.tenant = self._tenant(request)
        body = await read_json_object(request, self._limits)
        trace.stream = body.get("stream") is True
        ask = Ask(path=request.path, headers=request.headers, body=body)
        await until_gone(request.receive, self._path.serve(ask, trace=trace, responder=responder))

    async def _list_models(self, request: Request, _: Trace, responder: Responder) -> None:
        await send_json(responder, model_list(self._current.get(), self._tenant(request)))

    async def _show_model(self, request: Request, _: Trace, responder: Responder) -> None:
        name = request.path.removeprefix(f"{_MODELS}/")
        await send_json(responder, model_document(self._current.get(), self._tenant(request), name))

    async def _health(self, _: Request, __: Trace, responder: Responder) -> None:
        alive = self._is_alive()
        await send_json(responder, {"status": "ok" if alive else "stopped"}, status=200 if alive else 503)

    async def _readiness(self, _: Request, __: Trace, responder: Responder) -> None:
        ready = self._current.is_ready
        document: dict[str, object] = {
            "ready": ready,
            "snapshot_age_s": self._current.age_s,
            "in_flight": self._path.totals.in_flight.total(),
            "waiting": self._cold.waiting,
            "version_mismatch": self._path.totals.version_mismatch,
            "records_pending": self._records.pending,
            "records_dropped": self._records.dropped,
        }
        await send_json(responder, document, status=200 if ready else 503)

    def _tenant(self, request: Request) -> str:
        return authenticate(self._current.get(), request.headers.get("authorization"), now=datetime.now(UTC))
