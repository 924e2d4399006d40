"""HTTP/1.1 as the gateway speaks it to clients: connections that uvicorn accepts, parsed by llhttp through `httptools`.

uvicorn listens, drains and stops; its own protocol, with a scope, an event and a task for each request and two messages
for each answer, costs more than everything else that the gateway does (and granian was no faster with an empty relay
behind it). Here a request is handed over once the bytes that brought its head are parsed, mostly with its whole body,
and an answer is written at once. Heads are bounded in size and in time, bodies that nobody reads any more too; trailers
are bounded and dropped. Errors of the protocol itself are answered in OpenAI's form. Requests that come before the last
one is answered wait for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
import orjson
from uvicorn import Config
from uvicorn.server import ServerState

from gateway.wire.connection import Request
from gateway.wire.outbox import Outbox, Sender
from gateway.wire.work import Work

_log = logging.getLogger(__name__)

_LONGEST_HEAD: Final = 64 * 1024
_HEAD_TIMEOUT_S = 30.0
# Longer than load balancers keep theirs: who closes an idle connection first loses the request that was on its way.
_KEEPALIVE_S: Final = 75.0
_LONGEST_TICK_S: Final = 1.0
# Of a body that nobody reads yet, so much is taken in.
_HIGH_WATER: Final = 64 * 1024
# Answers that go out together: all of a round, but for the longest ones.
_MOST_TOGETHER: Final = 64
# What a client may still send of a body that was refused, so that it gets to read the refusal.
_MOST_UNREAD = 64 * 1024 * 1024

_REFUSALS = {
    HTTPStatus.BAD_REQUEST: ("bad_request", "The request isn't valid HTTP."),
    HTTPStatus.REQUEST_TIMEOUT: ("head_too_slow", "The request's headers didn't arrive in time."),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: ("head_too_large", f"The headers are over {_LONGEST_HEAD} bytes."),
}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"connection: close\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"

# The names that most clients send, as they write them.
_NAMES = {
    spelt.encode(): name
    for name in (
        *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"),
        *("traceparent", "tracestate", "user-agent", "x-lorekeeper-session", "x-request-id"),
    )
    for spelt in (name, name.title())
}

Handle = Callable[[Request], Coroutine[Any, None, None]]


class Reception:
    """Makes a protocol for each connection that uvicorn accepts (its setting `http`), and looks after all of them."""

    def __init__(self, handle: Handle) -> None:
        """Have requests answered by `handle`."""
        self.handle = handle
        self.connections: set[GatewayHttp] = set()
        self._outbox: Outbox | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __call__(
        self,
        *,
        config: Config,  # noqa: ARG002  as uvicorn calls it
        server_state: ServerState,
        app_state: dict[str, Any],  # noqa: ARG002  as above
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "GatewayHttp":
        """See uvicorn."""
        loop = _loop or asyncio.get_running_loop()
        outbox = self._outbox = self._outbox or Outbox(loop, most=_MOST_TOGETHER)
        return GatewayHttp(self, server_state, loop, outbox)

    def look_after(self, connection: "GatewayHttp", loop: asyncio.AbstractEventLoop) -> None:
        """End the connection when its client has made it wait for too long."""
        self.connections.add(connection)
        if self._timer is None:
            self._look_later(loop)

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(min(_LONGEST_TICK_S, _HEAD_TIMEOUT_S / 4), self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for connection in tuple(self.connections):
            connection.check(now)
        if self.connections:
            self._look_later(loop)


class GatewayHttp(Sender):
    """One connection of a client; see `gateway.wire.connection.Connection`. An asyncio.Protocol by what it has."""

    def __init__(
        self, reception: Reception, server: ServerState, loop: asyncio.AbstractEventLoop, outbox: Outbox
    ) -> None:
        """Hand requests over to the reception's service."""
        super().__init__(outbox)
        self._reception = reception
        self._server = server
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        # Else a request that says `connection: close` would be lost together with what came after it.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._url = b""
        self._headers: dict[str, str] = {}
        self._in_head = False
        # Of a head, or of what isn't body since the last bytes of a body: trailers, extensions of chunks.
        self._head_bytes = 0
        self._has_moved = False
        self._unread = 0
        # Since when the client has let the connection wait, while nothing is being answered.
        self._since = loop.time()
        self._was_used = False
        self._arriving: Request | None = None
        self._answering: Request | None = None
        self._waiting: deque[Request] = deque()
        self._work: Work | None = None
        self._is_started = self._is_complete = False
        self._closes = False
        self._is_paused = False
        self._drained: asyncio.Future[None] | None = None
        self.is_gone = False
        self.is_slow = False

    # See Connection.

    def invite(self) -> None:
        """See Connection."""
        request = self._answering
        if request is not None and request.headers.get("expect", "").lower() == "100-continue" and not self._is_started:
            self.put(_CONTINUE)
        self._resume()

    def begin(self, status: int, lines: bytes, first: bytes) -> None:
        """See Connection."""
        if not self.is_gone:
            self._is_started = True
            head = b"%b%btransfer-encoding: chunked\r\n%b\r\n" % (_STATUS[status], lines, self._last_line())
            self.put(head + _chunk(first))

    def write(self, data: bytes) -> None:
        """See Connection."""
        if not self.is_gone:
            self.put(_chunk(data))

    def end(self, last: bytes) -> None:
        """See Connection."""
        if not self.is_gone:
            self.put(_chunk(last) + _LAST_CHUNK)
            self._complete()

    def whole(self, status: int, lines: bytes, body: bytes, *, closes: bool) -> None:
        """See Connection."""
        request = self._answering
        if self.is_gone or request is None:
            return
        self._is_started = True
        self._closes = self._closes or closes
        head = b"%b%bcontent-length: %d\r\n%b\r\n" % (_STATUS[status], lines, len(body), self._last_line())
        self.put(head if request.method == "HEAD" else head + body)
        self._complete()

    async def drained(self) -> None:
        """See Connection."""
        if self.is_slow and not self.is_gone:
            self._drained = self._loop.create_future()
            await self._drained

    def drop(self) -> None:
        """See Connection."""
        self.abort()

    # See uvicorn.

    def shutdown(self) -> None:
        """End it as soon as nothing is being answered."""
        self._closes = True
        if self._answering is None:
            self.close()

    # See asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        # uvloop's transports have the same methods and another ancestry.
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections.add(cast("Any", self))
        self._reception.look_after(self, self._loop)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  all that matters is that it's gone
        """See asyncio."""
        self.is_gone = True
        self._server.connections.discard(cast("Any", self))
        self._reception.connections.discard(self)
        self._waiting.clear()
        self.resume_writing()
        if self._work is not None and not self._is_complete:
            self._work.cancel()

    def eof_received(self) -> None:
        """See asyncio; the transport closes after it, and whoever answers hears that the client is gone."""
        self.send()

    def pause_writing(self) -> None:
        """See asyncio."""
        self.is_slow = True

    def resume_writing(self) -> None:
        """See asyncio."""
        self.is_slow = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, count what still belongs to a head or is like one, and begin with what has come."""
        was_in_head = self._in_head
        self._has_moved = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Another protocol isn't spoken, and what came after is part of it.
            self._closes = True
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if self._in_head or not self._has_moved:
            self._head_bytes += len(data)
            if self._head_bytes > _LONGEST_HEAD:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                return
        if self._answering is None:
            if self._waiting:
                self._begin_next()
            elif not (self._in_head and was_in_head):
                self._since = self._loop.time()

    def check(self, now: float) -> None:
        """End it if the client has let it wait for too long, for a request's head or between two requests."""
        if self._answering is not None:
            return
        is_idle = self._was_used and not self._in_head
        if now - self._since <= (_KEEPALIVE_S if is_idle else _HEAD_TIMEOUT_S):
            return
        if self._in_head:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.close()

    # See httptools.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url = b""
        self._headers = {}
        self._in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """A part of its target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers, whole; what comes after its head, a trailer, is none."""
        if not self._in_head:
            return
        self._headers[_NAMES.get(name) or name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The end of its head."""
        self._in_head, self._unread = False, 0
        self._move_on()
        method = self._parser.get_method().decode("ascii")
        self._arriving = request = Request(method, _path(self._url), self._headers, self)
        is_old = "connection" in self._headers and self._parser.get_http_version() == "1.0"
        request.closes = is_old or not self._parser.should_keep_alive()
        self._waiting.append(request)
        if self._answering is not None:
            self._pause()

    def on_body(self, body: bytes) -> None:
        """Bytes of its body."""
        self._move_on()
        request = self._arriving
        if request is None:
            return
        if request.is_answered:
            self._unread += len(body)
            if self._unread > _MOST_UNREAD:
                self.close()
            return
        request.add(body)
        if request.unread > _HIGH_WATER:
            self._pause()

    def on_message_complete(self) -> None:
        """Its end."""
        self._move_on()
        if self._arriving is not None:
            self._arriving.end()
            if self._arriving is self._answering:
                # Nobody asks for more of it, and only who reads hears that the client left.
                self._resume()

    def _move_on(self) -> None:
        """What has been counted is over."""
        self._head_bytes, self._has_moved = 0, True

    # One request after the other.

    def _begin_next(self) -> None:
        if self._answering is not None or not self._waiting or self._transport.is_closing():
            return
        request = self._answering = self._waiting.popleft()
        self._is_started = self._is_complete = False
        self._was_used = True
        self._closes = self._closes or request.closes
        if request.is_whole:
            self._resume()
        work = self._work = Work(self._reception.handle(request), self._loop, self._ended)
        self._server.tasks.add(cast("Any", work))
        work.begin()

    def _complete(self) -> None:
        self._is_complete = True
        if self._answering is not None:
            self._answering.is_answered = True
        if self._closes:
            self.close()

    def _ended(self, work: Work, error: BaseException | None) -> None:
        """Whoever answered is done; an answer that isn't complete is left so, for the client to see the break."""
        self._server.tasks.discard(cast("Any", work))
        self._work = self._answering = None
        if error is not None and not isinstance(error, asyncio.CancelledError):
            _log.error("a request failed in the gateway itself", exc_info=error)
        if not self._is_complete:
            self.close()
        if self.is_gone or self._transport.is_closing():
            return
        self._since = self._loop.time()
        self._resume()
        if self._waiting:
            self._loop.call_soon(self._begin_next)

    def _pause(self) -> None:
        if not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused and not self._waiting and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def _last_line(self) -> bytes:
        return _CLOSE if self._closes else b""

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer without the service, if an answer now would be taken for the one to this request, and close."""
        answering, arriving = self._answering, self._arriving
        awaits_body = answering is arriving and arriving is not None and not arriving.is_whole and not self._is_started
        is_answered = arriving is not None and arriving.is_answered and not arriving.is_whole
        is_free = (answering is None and not is_answered) or awaits_body
        is_free = is_free and not any(request.is_whole for request in self._waiting)
        if is_free and not self._transport.is_closing():
            self.put(_refusal(status))
        self._waiting.clear()
        self.close()


@lru_cache(maxsize=256)
def _path(target: bytes) -> str:
    """The decoded path of a request's target; raises httptools.HttpParserInvalidURLError."""
    raw = target.partition(b"?")[0] if target.startswith(b"/") else httptools.parse_url(target).path or b"/"
    path = raw.decode("latin-1")
    return unquote(path) if "%" in path else path


def _chunk(data: bytes) -> bytes:
    """The data as a chunk; nothing of nothing, which would end the answer."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _status_line(status: int) -> bytes:
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_STATUS = {status: _status_line(status) for status in range(100, 600)}


def _refusal(status: HTTPStatus) -> bytes:
    code, message = _REFUSALS[status]
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    body = orjson.dumps({"error": error})
    return (
        b"%bcontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n" % (_STATUS[status], len(body), _CLOSE)
    ) + body
