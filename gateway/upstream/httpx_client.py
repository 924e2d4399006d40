"""The upstream port on httpx."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx

from gateway.errors import (
    EngineBroken,
    EngineDropped,
    EngineSilent,
    EngineUnreachable,
    GatewayBusy,
)
from gateway.upstream.lanes import LaneTransport
from gateway.upstream.ports import EngineAnswer, EngineCall

_CONNECT_TIMEOUT_S = 3.0
_POOL_TIMEOUT_S = 5.0
# Shorter than the 5 seconds after which uvicorn, and so vLLM, closes an idle connection.
_KEEPALIVE_S = 4.0


def engine_client(*, connections: int, silence_s: float) -> httpx.AsyncClient:
    """A client for engines: no proxies, no redirects, no compression, at most `connections` at once.

    `silence_s` is the longest time without a byte.
    """
    return httpx.AsyncClient(
        headers={"accept-encoding": "identity", "user-agent": "lorekeeper-gateway"},
        timeout=httpx.Timeout(silence_s, connect=_CONNECT_TIMEOUT_S),
        transport=LaneTransport(connections=connections, keepalive_s=_KEEPALIVE_S, wait_s=_POOL_TIMEOUT_S),
        trust_env=False,
        follow_redirects=False,
    )


class HttpxUpstream:
    """Calls engines through a pooled httpx client."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        """Use a client as made by `engine_client`; the caller closes it."""
        self._client = client

    @asynccontextmanager
    async def open(self, call: EngineCall) -> AsyncIterator[EngineAnswer]:
        """See Upstream.open."""
        response = await self._send(call)
        try:
            raw = response.aiter_raw()
            first = await _first_chunk(raw)
            async with aclosing(_all_chunks(first, raw)) as chunks:
                yield EngineAnswer(response.status_code, response.headers, chunks)
        finally:
            await response.aclose()

    async def _send(self, call: EngineCall) -> httpx.Response:
        try:
            request = self._client.build_request("POST", call.url, content=call.body, headers=dict(call.headers))
            return await self._client.send(request, stream=True)
        except httpx.PoolTimeout:
            message = "All connections to the engines are in use."
            raise GatewayBusy(message, retry_after_s=2) from None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            message = "The engine can't be reached."
            raise EngineUnreachable(message) from error
        except httpx.TimeoutException as error:
            raise _silent() from error
        except httpx.TransportError as error:
            raise _dropped() from error


async def _first_chunk(raw: AsyncIterator[bytes]) -> bytes:
    try:
        return await anext(raw, b"")
    except httpx.TimeoutException as error:
        raise _silent() from error
    except httpx.TransportError as error:
        raise _dropped() from error


async def _all_chunks(first: bytes, raw: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    if first:
        yield first
    try:
        async for chunk in raw:
            yield chunk
    except httpx.TimeoutException as error:
        raise _silent() from error
    except httpx.TransportError as error:
        message = "The engine's answer broke off."
        raise EngineBroken(message) from error


def _silent() -> EngineSilent:
    return EngineSilent("The engine sent nothing for too long.")


def _dropped() -> EngineDropped:
    return EngineDropped("The engine closed the connection without an answer.")
