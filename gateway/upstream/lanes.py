"""A pool of connections to engines whose cost doesn't grow with their number.

httpx's own pool looks at all connections for each request, so that some hundred at once take seconds. Here each
connection is a lane of its own, and idle lanes lie on a stack per engine.
"""

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx

_Origin = tuple[str, str, int | None]


@dataclass(frozen=True, slots=True)
class _Lane:
    """A transport that holds one connection, idle since `since`."""

    transport: httpx.AsyncHTTPTransport
    since: float


class LaneTransport(httpx.AsyncBaseTransport):
    """An httpx transport with at most `connections` at once; idle ones are kept for `keepalive_s` seconds."""

    def __init__(self, *, connections: int, keepalive_s: float, wait_s: float) -> None:
        """A request waits `wait_s` seconds for a free connection, then fails with httpx.PoolTimeout."""
        self._free = asyncio.Semaphore(connections)
        self._keepalive_s = keepalive_s
        self._wait_s = wait_s
        self._ssl = ssl.create_default_context()
        self._idle: defaultdict[_Origin, list[_Lane]] = defaultdict(list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request on an idle connection to its engine, or on a new one."""
        origin = (request.url.scheme, request.url.host, request.url.port)
        await self._admit(request)
        transport = await self._take(origin)
        try:
            response = await transport.handle_async_request(request)
        except BaseException:
            self._free.release()
            await transport.aclose()
            raise
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_LaneStream(self, origin, transport, response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the idle connections."""
        lanes = [lane for stack in self._idle.values() for lane in stack]
        self._idle.clear()
        for lane in lanes:
            await lane.transport.aclose()

    async def give_back(self, origin: _Origin, transport: httpx.AsyncHTTPTransport) -> None:
        """Take a connection back whose answer has been read or given up."""
        self._free.release()
        self._idle[origin].append(_Lane(transport, time.monotonic()))
        await self._close_expired(origin)

    async def _admit(self, request: httpx.Request) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            message = "no connection free"
            raise httpx.PoolTimeout(message, request=request) from None

    async def _take(self, origin: _Origin) -> httpx.AsyncHTTPTransport:
        await self._close_expired(origin)
        stack = self._idle[origin]
        if stack:
            return stack.pop().transport
        limits = httpx.Limits(max_connections=1, keepalive_expiry=self._keepalive_s)
        return httpx.AsyncHTTPTransport(verify=self._ssl, trust_env=False, limits=limits)

    async def _close_expired(self, origin: _Origin) -> None:
        stack = self._idle[origin]
        oldest = time.monotonic() - self._keepalive_s
        while stack and stack[0].since < oldest:
            await stack.pop(0).transport.aclose()


class _LaneStream(httpx.AsyncByteStream):
    def __init__(
        self, pool: LaneTransport, origin: _Origin, transport: httpx.AsyncHTTPTransport, response: httpx.Response
    ) -> None:
        self._pool, self._origin, self._transport, self._response = pool, origin, transport, response
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            message = "the transport gave a synchronous stream"
            raise TypeError(message)
        async for chunk in stream:
            yield chunk

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._response.aclose()
        finally:
            await self._pool.give_back(self._origin, self._transport)
