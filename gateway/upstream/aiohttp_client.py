"""The upstream port on aiohttp's client: kept by others, slower by far, and less strict.

It takes bytes that an idle connection sent unasked for the next call's answer (the check of the model that follows is
then all there is), repeats a call on an idle connection that broke within its answer's head, and bounds a head's single
fields but not their sum.
"""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from yarl import URL

from gateway.errors import (
    EngineBroken,
    EngineDropped,
    EngineFault,
    EngineSilent,
    EngineUnreachable,
    EngineUnreadable,
)
from gateway.upstream.allowance import Allowance
from gateway.upstream.llhttp import request_head
from gateway.upstream.pool import Origin, PoolLimits
from gateway.upstream.ports import EngineCall

_HEADERS = {"accept-encoding": "identity", "user-agent": "lorekeeper-gateway"}
_LONGEST_HEAD = 64 * 1024
_HIGH_WATER = 256 * 1024
_BODILESS = frozenset({204, 304})
_UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(slots=True)
class _Way:
    """How a request went out: over a connection that was idle before, or a new one."""

    is_reused: bool = False


class AiohttpAnswer:
    """See EngineAnswer."""

    def __init__(self, response: aiohttp.ClientResponse, on_close: Callable[[], None]) -> None:
        """Call `on_close` once at the end."""
        self.status = response.status
        self.headers = _joined(response)
        self._response = response
        self._on_close: Callable[[], None] | None = on_close
        self._first = b""

    async def begun(self) -> None:
        """Wait for the first byte of the body, or its end."""
        self._check_framing()
        try:
            self._first = await self._response.content.readany()
        except _FAILURES as error:
            # The head has come: the engine has taken the request.
            raise _fault(error, has_begun=True) from error

    async def read(self) -> bytes:
        """See EngineAnswer."""
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            return await self._response.content.readany()
        except _FAILURES as error:
            raise _fault(error, has_begun=True) from error

    async def forward(self, take: Callable[[bytes], bool]) -> bytes | None:
        """See EngineAnswer."""
        while part := await self.read():
            if not take(part):
                return None
        return b""

    async def whole(self, most: int) -> bytes:
        """See EngineAnswer."""
        parts: list[bytes] = []
        size = 0
        while part := await self.read():
            parts.append(part)
            size += len(part)
            if size > most:
                message = f"The engine's answer is over {most} bytes."
                raise EngineUnreadable(message)
        return b"".join(parts)

    def close(self) -> None:
        """See EngineAnswer."""
        if self._on_close is None:
            return
        on_close, self._on_close = self._on_close, None
        # At its end the connection went back to the pool by itself; before it, closing cancels the engine's work.
        self._response.close()
        on_close()

    def _check_framing(self) -> None:
        coding = self.headers.get(b"transfer-encoding")
        is_framed = b"content-length" in self.headers if coding is None else coding.lower() == b"chunked"
        if not is_framed and self.status not in _BODILESS:
            message = "The engine's answer doesn't say where it ends."
            raise EngineUnreadable(message)


class AiohttpUpstream:
    """Calls engines through one aiohttp session."""

    def __init__(self, session: aiohttp.ClientSession, limits: PoolLimits) -> None:
        """Use a session as made by `aiohttp_upstream`."""
        self._session = session
        self._limits = limits
        self._allowance = Allowance(limits.connections, wait_s=limits.wait_s, what="the engines")
        self._engines: dict[str, Allowance] = {}

    async def send(self, call: EngineCall) -> AiohttpAnswer:
        """See Upstream."""
        url = call.engine_url
        request_head(Origin.parse(url, self._limits).authority, call)
        give_place = await self._place(url)
        try:
            answer = AiohttpAnswer(await self._response(call), give_place)
        except BaseException:
            give_place()
            raise
        try:
            await answer.begun()
        except BaseException:
            answer.close()
            raise
        return answer

    async def _place(self, url: str) -> Callable[[], None]:
        """Take a place; what is returned gives it back."""
        own = self._engines.get(url)
        if own is None:
            own = self._engines[url] = Allowance(self._limits.each, wait_s=self._limits.wait_s, what="this engine")
        await own.take()
        try:
            await self._allowance.take()
        except BaseException:
            self._left(url, own)
            raise

        def give() -> None:
            self._allowance.give()
            self._left(url, own)

        return give

    def _left(self, url: str, own: Allowance) -> None:
        own.give()
        if own.is_untouched:
            del self._engines[url]

    async def _response(self, call: EngineCall) -> aiohttp.ClientResponse:
        way = _Way()
        try:
            return await self._ask(call, way)
        except _FAILURES as error:
            is_stale = way.is_reused and isinstance(error, (aiohttp.ServerDisconnectedError, OSError))
            if not is_stale or isinstance(error, TimeoutError):
                raise _fault(error, has_begun=False) from error
        try:
            return await self._ask(call, _Way())
        except _UNREACHABLE as error:
            # Something was sent before: it may be what ended the engine, so it mustn't count as never sent.
            raise _dropped() from error
        except _FAILURES as error:
            raise _fault(error, has_begun=False) from error

    async def _ask(self, call: EngineCall, way: _Way) -> aiohttp.ClientResponse:
        return await self._session.request(
            call.method,
            URL(call.engine_url.rstrip("/") + call.path, encoded=True),
            # aiohttp warns of large bodies in one piece; they are in memory anyhow.
            data=io.BytesIO(call.body),
            headers=call.headers,
            allow_redirects=False,
            trace_request_ctx=way,
        )


@asynccontextmanager
async def aiohttp_upstream(limits: PoolLimits) -> AsyncIterator[AiohttpUpstream]:
    """A client with a session of its own, closed at the end."""
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(_note_reuse)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=limits.keepalive_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s, sock_read=limits.silence_s),
        auto_decompress=False,
        trust_env=False,
        trace_configs=[tracing],
        read_bufsize=_HIGH_WATER,
        max_line_size=_LONGEST_HEAD,
        max_field_size=_LONGEST_HEAD,
    ) as session:
        yield AiohttpUpstream(session, limits)


async def _note_reuse(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: aiohttp.TraceConnectionReuseconnParams
) -> None:
    context.trace_request_ctx.is_reused = True


def _joined(response: aiohttp.ClientResponse) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for name, value in response.raw_headers:
        known = headers.get(name.lower())
        headers[name.lower()] = value if known is None else known + b", " + value
    return headers


def _fault(error: BaseException, *, has_begun: bool) -> EngineFault:
    """What it means, by whether a byte of the answer's body had come."""
    if isinstance(error, _UNREACHABLE):
        return EngineUnreachable("The engine can't be reached.")
    if isinstance(error, TimeoutError):
        return EngineSilent("The engine sent nothing for too long.")
    if isinstance(error, (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, OSError)):
        return EngineBroken("The engine's answer broke off.") if has_begun else _dropped()
    return EngineUnreadable("The engine's answer isn't valid HTTP.")


def _dropped() -> EngineDropped:
    return EngineDropped("The engine closed the connection without an answer.")
