"""The connection pool to engines, over real sockets."""

import asyncio
from typing import Any

import httpx
import pytest

from gateway.upstream.lanes import LaneTransport
from gateway.wire.asgi import Receive, Scope, Send
from tests.integration.gateway.stubs import part, read, serving, start


class Ports:
    """Answers with "ab" in two parts and remembers from which client ports it was asked."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope["client"][1])
        await read(receive)
        await start(send)
        await part(send, b"a")
        await self.go_on.wait()
        await part(send, b"b", more=False)


def client_over(**facts: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=LaneTransport(**{"connections": 10, "keepalive_s": 4.0, "wait_s": 0.1, **facts}), trust_env=False
    )


async def test_requests_one_after_another_share_a_connection() -> None:
    ports = Ports()
    async with serving(ports) as url, client_over() as client:
        for _ in range(5):
            assert (await client.get(url)).content == b"ab"
    assert len(set(ports.seen)) == 1


async def test_requests_at_once_have_connections_of_their_own_and_keep_them() -> None:
    ports = Ports()
    async with serving(ports) as url, client_over() as client:
        for _ in range(2):
            await asyncio.gather(*(client.get(url) for _ in range(5)))
    assert len(set(ports.seen)) == 5


async def test_an_idle_connection_that_is_too_old_is_not_used() -> None:
    ports = Ports()
    async with serving(ports) as url, client_over(keepalive_s=0.05) as client:
        await client.get(url)
        await asyncio.sleep(0.1)
        await client.get(url)
    assert len(set(ports.seen)) == 2


async def test_requests_over_the_bound_wait_and_then_fail() -> None:
    ports = Ports()
    ports.go_on.clear()
    async with serving(ports) as url, client_over(connections=2) as client:
        busy = [asyncio.create_task(client.get(url)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(httpx.PoolTimeout):
            await client.get(url)
        ports.go_on.set()
        await asyncio.gather(*busy)
        assert (await client.get(url)).content == b"ab"


async def test_failed_and_abandoned_requests_give_their_place_back() -> None:
    ports = Ports()
    async with serving(ports) as url, client_over(connections=1) as client:
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                await client.get("http://127.0.0.1:1")
            ports.go_on.clear()
            async with client.stream("GET", url):
                pass
            ports.go_on.set()
            assert (await client.get(url)).content == b"ab"


async def test_a_cancelled_request_gives_its_place_back_and_closes_its_connection() -> None:
    ports = Ports()
    async with serving(ports) as url, client_over(connections=1) as client:
        ports.go_on.clear()
        request = asyncio.create_task(client.get(url))
        await asyncio.sleep(0.05)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        ports.go_on.set()
        assert (await client.get(url)).content == b"ab"
    assert len(set(ports.seen)) == 2
