"""One HTTP/1.1 connection to an engine, parsed by llhttp through `httptools`.

llhttp is strict: it refuses a content-length beside a transfer-encoding, one that is given twice or isn't a number,
folded headers, blanks before a colon, bare line feeds and malformed chunks (RFC 9112). What it lets through and this
module refuses: an answer that ends with its connection, since a cut one would look whole; a transfer-encoding other
than plain `chunked`; a switch of protocols; heads and trailers that don't end.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, cast

import httptools

from gateway.errors import EngineBroken, EngineDropped, EngineFault, EngineSilent, EngineUnreadable
from gateway.wire.outbox import Outbox, Sender
from gateway.wire.work import Signal

_LONGEST_HEAD: Final = 64 * 1024
# Bytes that are neither of a body nor end a head: chunk sizes and their extensions, trailers, informational answers.
_MOST_OVERHEAD: Final = 64 * 1024
_HIGH_WATER: Final = 256 * 1024
_NEVER: Final = 1 << 62
_ONE_WRITE: Final = 64 * 1024
_INFORMATIONAL: Final = 200
_SWITCHING: Final = 101
_BODILESS = frozenset({204, 304})


class StaleLane(Exception):
    """A connection that had been idle ended before any byte of an answer came back."""


class LaneOwner(Protocol):
    """Where connections come from and go back to."""

    def released(self, lane: "Lane", *, reusable: bool) -> None:
        """The exchange on the lane has ended. A lane that isn't reusable closes itself."""

    def lost(self, lane: "Lane") -> None:
        """An idle lane has closed."""


class Exchange:
    """One request on a lane and the answer to it; see EngineAnswer."""

    __slots__ = (
        "_fault",
        "_lane",
        "_take",
        "headers",
        "is_ended",
        "need",
        "parts",
        "since",
        "size",
        "status",
        "waiter",
    )

    def __init__(self, lane: "Lane") -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.is_ended = False
        # When the engine last sent something for which somebody waits, by the loop's clock.
        self.since = 0.0
        # What of the body lies here unread, and how much of that somebody waits for.
        self.parts: list[bytes] = []
        self.size = 0
        self.need = 1
        self.waiter: Signal | None = None  # of whoever waits for the engine
        self._lane = lane
        self._take: Callable[[bytes], bool] | None = None
        self._fault: Exception | None = None

    def begun(self) -> Coroutine[Any, None, None]:
        """Wait for the first byte of the body or the end of the answer; raises StaleLane beside the port's errors."""
        return self._until(1)

    async def read(self) -> bytes:
        """See EngineAnswer."""
        if not self.parts:
            await self._until(1)
        return self._all()

    async def forward(self, take: Callable[[bytes], bool]) -> bytes | None:
        """See EngineAnswer. The bytes go on in the loop's own call that brought them: no task wakes for each."""
        if not self.is_ended:
            if self.parts and not take(self._all()):
                return None
            self._take = take
            try:
                await self._until(_NEVER)
            finally:
                self._take = None
        if self._fault is not None:
            if self.parts:
                take(self._all())
            raise self._fault
        return self._all() if self.is_ended else None

    async def whole(self, most: int) -> bytes:
        """See EngineAnswer."""
        if not self.is_ended:
            self._lane.resume()
            await self._until(most + 1)
        if self.size > most:
            message = f"The engine's answer is over {most} bytes."
            raise EngineUnreadable(message)
        if self._fault is not None:
            raise self._fault
        return self._all()

    def close(self) -> None:
        """See EngineAnswer."""
        if not self.is_ended:
            self._lane.give_up()

    def end(self, fault: Exception | None = None) -> None:
        """No more will come."""
        self.is_ended = True
        self._fault = fault
        if isinstance(fault, EngineUnreadable):
            # What came before it can't be trusted either: it may be a part of what was meant otherwise.
            self.parts.clear()
            self.size = 0
        self.wake()

    def wake(self) -> None:
        """Let who waits go on, if there is what it waits for. What came together with the end waits for that."""
        take = self._take
        if take is not None and self.parts and not self.is_ended and not take(self._all()):
            self._take, self.need = None, 0
        if self.waiter is not None and (self.is_ended or self.size >= self.need):
            self.waiter.fire()

    async def _until(self, need: int) -> None:
        """Wait until `need` bytes lie here unread or the answer has ended; raises its fault."""
        if not self.is_ended and self.size < need:
            loop = self._lane.loop
            self.need, self.since = need, loop.time()
            waiter = self.waiter = Signal(loop)
            try:
                await waiter
            finally:
                self.waiter, self.need = None, 1
        if self._fault is not None and self.size < need:
            raise self._fault

    def _all(self) -> bytes:
        parts = self.parts
        if not parts:
            return b""
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.size = 0
        if self._lane.is_paused and not self.is_ended:  # from then on the lane may be another's
            self._lane.resume()
        return data


class Lane(Sender):
    """A connection that carries one exchange at a time; an asyncio.Protocol by what it has."""

    def __init__(self, owner: LaneOwner, origin: object, loop: asyncio.AbstractEventLoop, outbox: Outbox) -> None:
        """Tell `owner` when it's free or gone; `origin` is whatever the owner knows it by."""
        super().__init__(outbox)
        self.loop = loop
        self.origin = origin
        self.idle_since = 0.0
        self._owner = owner
        self._exchange: Exchange | None = None
        self._is_open = False  # between the request and the end of its answer: what is parsed belongs to the exchange
        self._was_used = False
        self._is_spoilt = False
        self.is_paused = False
        self._keeps_alive = False
        self._has_answered = False
        self._head_bytes = 0
        self._overhead = 0
        self._refusal = ""
        self._parser = httptools.HttpResponseParser(self)

    @property
    def is_usable(self) -> bool:
        """Whether another exchange may begin."""
        return not self._is_spoilt and self._exchange is None and not self._transport.is_closing()

    @property
    def exchange(self) -> Exchange | None:
        """What it carries now."""
        return self._exchange

    def begin(self, head: bytes, body: bytes) -> Exchange:
        """Send a request."""
        exchange = self._exchange = Exchange(self)
        self._is_open, self._has_answered, self._keeps_alive = True, False, False
        self._head_bytes = self._overhead = 0
        if len(body) < _ONE_WRITE:
            self.put(head + body)
        else:
            self.put(head)
            self.put(body)
        return exchange

    def resume(self) -> None:
        """Read on, if it was held up."""
        if self.is_paused:
            self.is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def give_up(self) -> None:
        """Close the connection under an answer that nobody wants any more."""
        self._fail(EngineBroken("The answer was given up."))

    def silence(self) -> None:
        """The engine has let whoever waits wait for too long."""
        self._fail(EngineSilent("The engine sent nothing for too long."))

    def close(self) -> None:
        """Close an idle connection."""
        self._is_spoilt = True
        super().close()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        # uvloop's transports have the same methods and another ancestry.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        exchange = self._exchange
        if exchange is None or self._unsent:
            # An answer to nothing: it would be taken for the one to the next request.
            self._is_spoilt = True
            self.abort()
            return
        self._has_answered = True
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if self._is_open:
                self._refusal = self._refusal or "The engine's answer isn't valid HTTP."
            self._is_spoilt = True
        if not self._is_open and not self._refusal:
            self._finish(exchange)
        elif self._refusal or self._overhead > _MOST_OVERHEAD:
            self._fail(EngineUnreadable(self._refusal or "The engine's answer has a head or trailer without an end."))
        elif exchange.waiter is not None:
            exchange.since = self.loop.time()
            exchange.wake()

    def eof_received(self) -> None:
        """See asyncio; the transport closes after it."""
        self._is_spoilt = True

    def pause_writing(self) -> None:
        """See asyncio: a request is in memory as a whole anyhow."""

    def resume_writing(self) -> None:
        """See asyncio."""

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._is_spoilt = True
        exchange = self._exchange
        if exchange is None:
            self._owner.lost(self)
        else:
            self._end(exchange, self._loss(exchange, exc))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """See httptools. After an answer only what nobody asked for can begin."""
        if not self._is_open:
            self._is_spoilt = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools; trailers are counted and dropped."""
        exchange = self._exchange
        if exchange is None or not self._is_open or exchange.status:
            return
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _LONGEST_HEAD:
            self._refusal = "The engine's answer has too large a head."
            return
        name = name.lower()
        known = exchange.headers.get(name)
        exchange.headers[name] = value if known is None else known + b", " + value

    def on_headers_complete(self) -> None:
        """See httptools."""
        exchange = self._exchange
        if exchange is None or not self._is_open:
            return
        status = self._parser.get_status_code()
        if status < _INFORMATIONAL:
            exchange.headers.clear()
            if status == _SWITCHING:
                self._refusal = "The engine wants to speak another protocol."
            return
        exchange.status = status
        self._keeps_alive = self._parser.should_keep_alive()
        self._check_framing(exchange.headers, status)

    def on_body(self, data: bytes) -> None:
        """See httptools."""
        exchange = self._exchange
        if exchange is None or not self._is_open:
            return
        self._overhead = 0
        exchange.parts.append(data)
        exchange.size += len(data)
        if exchange.size >= _HIGH_WATER and exchange.need <= _HIGH_WATER and not self.is_paused:
            self.is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """See httptools; an informational answer isn't the one that is waited for."""
        exchange = self._exchange
        if exchange is not None and exchange.status:
            self._is_open = False

    def _check_framing(self, headers: dict[bytes, bytes], status: int) -> None:
        coding = headers.get(b"transfer-encoding")
        if coding is None:
            if b"content-length" not in headers and status not in _BODILESS:
                self._refusal = "The engine's answer doesn't say where it ends."
        elif coding.lower() != b"chunked":
            self._refusal = "The engine's answer has a transfer coding that nobody asked for."

    def _finish(self, exchange: Exchange) -> None:
        """The answer is complete: the connection is free before anybody has read it."""
        # An answer before the request was read to its end: what is left of that would be taken for the next request.
        is_sent = self._transport.get_write_buffer_size() == 0
        reusable = self._keeps_alive and is_sent and not self._is_spoilt and not self._transport.is_closing()
        if self.is_paused:
            self.is_paused = False
            self._transport.resume_reading()
        self._exchange, self._was_used = None, True
        self._owner.released(self, reusable=reusable)
        if not is_sent:
            self.abort()  # closing would first wait for the engine to read what it doesn't want
        elif not reusable:
            self.close()
        exchange.end()

    def _fail(self, fault: EngineFault) -> None:
        exchange = self._exchange
        self._is_spoilt = True
        self.abort()
        if exchange is not None:
            self._end(exchange, fault)

    def _end(self, exchange: Exchange, fault: Exception) -> None:
        self._exchange, self._is_open = None, False
        self._owner.released(self, reusable=False)
        exchange.end(fault)

    def _loss(self, exchange: Exchange, exc: Exception | None) -> Exception:
        if exchange.status:
            error: Exception = EngineBroken("The engine's answer broke off.")
        elif self._was_used and not self._has_answered:
            error = StaleLane()
        else:
            error = EngineDropped("The engine closed the connection without an answer.")
        error.__cause__ = exc
        return error
