"""What our own client does beyond the port's contract: aiohttp's takes unasked bytes for the next call's answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import EngineFault, EngineUnreachable, EngineUnreadable
from gateway.upstream.llhttp import LlhttpUpstream
from gateway.upstream.pool import LanePool, PoolLimits
from tests.integration.gateway.upstream.faulty import AB, OK, Conversation, FaultyEngine, asked, faulty_engine, saying


@pytest.fixture
async def pool() -> AsyncIterator[LanePool]:
    # Kept for longer than any test waits: what closes a connection is what it tells of.
    made = LanePool(PoolLimits(connections=10, silence_s=5.0, keepalive_s=600))
    yield made
    made.close()


@pytest.fixture
def upstream(pool: LanePool) -> LlhttpUpstream:
    return LlhttpUpstream(pool)


@pytest.mark.parametrize("junk", [b"x", AB, b"HTTP/1.1 200 OK\r\n", b"\x00" * 10])
async def test_what_nobody_asked_for_is_never_taken_for_the_answer_to_the_next_call(
    upstream: LlhttpUpstream, junk: bytes
) -> None:
    left = asyncio.Event()

    async def say(conversation: Conversation) -> None:
        await conversation.say(AB + junk, pause_s=0)
        if await conversation.is_left():
            left.set()

    async with faulty_engine(say) as engine, asyncio.timeout(30):
        assert await asked(upstream, engine) == b"ab"
        await left.wait()
        engine.scripts = [saying(OK + b"content-length: 2\r\n\r\ncd")]
        assert await asked(upstream, engine) == b"cd"
        assert engine.connections == 2


async def test_what_comes_later_on_an_idle_connection_closes_it(upstream: LlhttpUpstream) -> None:
    answered, left = asyncio.Event(), asyncio.Event()

    async def say(conversation: Conversation) -> None:
        await conversation.say(AB, pause_s=0)
        await answered.wait()
        await conversation.say(AB, pause_s=0)
        if await conversation.is_left():
            left.set()

    async with faulty_engine(say) as engine, asyncio.timeout(30):
        assert await asked(upstream, engine) == b"ab"
        answered.set()
        await left.wait()
        engine.scripts = [saying(OK + b"content-length: 2\r\n\r\ncd")]
        assert await asked(upstream, engine) == b"cd"
        assert engine.connections == 2


async def test_a_connection_lost_after_the_first_byte_of_an_answer_is_not_replaced(upstream: LlhttpUpstream) -> None:
    async with faulty_engine(saying(AB), saying(b"HTTP/1.1 200", ends=True)) as engine:
        await asked(upstream, engine)
        with pytest.raises(EngineFault):
            await asked(upstream, engine)
        assert len(engine.requests) == 2


HEADS = {
    "many headers": OK + b"".join(b"x-%d: %s\r\n" % (number, b"v" * 1000) for number in range(100)),
    "an endless header": OK + b"x: " + b"v" * 1_000_000,
    "endless early hints": b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" * 10_000,
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
async def test_a_head_that_is_too_long_is_not_kept(upstream: LlhttpUpstream, head: bytes) -> None:
    async with faulty_engine(saying(head + b"\r\ncontent-length: 0\r\n\r\n")) as engine:
        with pytest.raises(EngineUnreadable):
            await asked(upstream, engine)


ENDLESS = {"trailers": b"0\r\n" + b"x-t: 1\r\n" * 100_000, "an extension": b"1;" + b"e" * 1_000_000 + b"\r\na\r\n"}


@pytest.mark.parametrize("rest", ENDLESS.values(), ids=ENDLESS.keys())
async def test_a_chunked_body_whose_frame_does_not_end_is_not_followed(upstream: LlhttpUpstream, rest: bytes) -> None:
    async with faulty_engine(saying(OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n", rest)) as engine:
        with pytest.raises(EngineFault):
            await asked(upstream, engine)


async def test_an_answer_before_the_request_was_read_ends_the_connection(
    upstream: LlhttpUpstream, pool: LanePool
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await ended.wait()
        writer.transport.abort()
        over.set()

    ended, over = asyncio.Event(), asyncio.Event()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0, limit=1024)
    engine = FaultyEngine(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    answer = await upstream.send(engine.call(b"x" * 50_000_000))
    assert (answer.status, await answer.whole(10)) == (413, b"no")
    assert (pool.busy, pool.idle) == (0, 0)
    server.close()
    ended.set()
    await over.wait()


async def test_nothing_is_kept_of_connections_that_are_gone(upstream: LlhttpUpstream, pool: LanePool) -> None:
    async with faulty_engine(saying(AB, ends=True), saying(OK, ends=True)) as engine:
        await asked(upstream, engine)
        async with asyncio.timeout(30):
            while pool.idle:  # noqa: ASYNC110  a pool tells nobody that it has lost one
                await asyncio.sleep(0)
        assert (pool.busy, pool.idle) == (0, 0)
        with pytest.raises(EngineFault):
            await asked(upstream, engine)
        assert (pool.busy, pool.idle) == (0, 0)
        await asked(upstream, engine)
        assert (pool.busy, pool.idle) == (0, 1)


async def test_a_connection_that_is_closed_as_soon_as_it_is_opened_is_not_waited_on(
    upstream: LlhttpUpstream, pool: LanePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    create = loop.create_connection

    async def create_and_lose(*args: Any, **more: Any) -> Any:
        transport, lane = await create(*args, **more)
        transport.abort()
        await asyncio.sleep(0)
        return transport, lane

    monkeypatch.setattr(loop, "create_connection", create_and_lose)
    async with faulty_engine() as engine, asyncio.timeout(30):
        with pytest.raises(EngineUnreachable):
            await asked(upstream, engine)
    assert (pool.busy, pool.idle) == (0, 0)
