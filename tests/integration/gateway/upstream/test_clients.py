"""Both clients behind the upstream port, against an engine that does with its connections whatever it likes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import pytest

from deploy.embedded.ports import free_port
from gateway.errors import (
    EngineBroken,
    EngineDropped,
    EngineFault,
    EngineSilent,
    EngineUnreachable,
    EngineUnreadable,
    GatewayBusy,
)
from gateway.upstream.aiohttp_client import aiohttp_upstream
from gateway.upstream.llhttp import llhttp_upstream
from gateway.upstream.pool import PoolLimits
from gateway.upstream.ports import EngineCall, Upstream
from tests.integration.gateway.upstream.faulty import (
    AB,
    MOST,
    OK,
    Conversation,
    FaultyEngine,
    asked,
    faulty_engine,
    saying,
)


class Make(Protocol):
    def __call__(self, **limits: Any) -> AbstractAsyncContextManager[Upstream]: ...


@pytest.fixture(params=[llhttp_upstream, aiohttp_upstream], ids=["llhttp", "aiohttp"])
def make(request: pytest.FixtureRequest) -> Make:
    def made(**limits: Any) -> AbstractAsyncContextManager[Upstream]:
        client: Callable[[PoolLimits], AbstractAsyncContextManager[Upstream]] = request.param
        return client(PoolLimits(**{"connections": 10, "silence_s": 5.0, "wait_s": 0.1, **limits}))

    return made


@pytest.fixture
async def upstream(make: Make) -> AsyncIterator[Upstream]:
    async with make() as made:
        yield made


async def read_all(upstream: Upstream, engine: FaultyEngine) -> list[bytes]:
    answer = await upstream.send(engine.call())
    parts = []
    try:
        while part := await answer.read():
            parts.append(part)
        assert await answer.read() == b""
        return parts
    finally:
        answer.close()


async def test_a_call_arrives_as_it_was_made(upstream: Upstream) -> None:
    async with faulty_engine() as engine:
        answer = await upstream.send(engine.call(b'{"a": 1}', **{"x-request-id": "req-1"}))
        assert (answer.status, answer.headers[b"content-type"]) == (200, b"application/json")
        assert await answer.whole(MOST) == b"ab"
        answer.close()
        (request,) = engine.requests
    line, *headers = request.head.decode().removesuffix("\r\n\r\n").split("\r\n")
    assert line == "POST /v1/completions HTTP/1.1"
    said = {name.lower(): value for name, _, value in (header.partition(": ") for header in headers)}
    assert said.pop("accept", "*/*") == "*/*"
    assert said == {
        "host": engine.url.removeprefix("http://"),
        "accept-encoding": "identity",
        "user-agent": "lorekeeper-gateway",
        "content-type": "application/json",
        "content-length": "8",
        "x-request-id": "req-1",
    }
    assert request.body == b'{"a": 1}'


async def test_calls_one_after_another_share_a_connection_and_calls_at_once_do_not(upstream: Upstream) -> None:
    async with faulty_engine() as engine:
        for _ in range(3):
            assert await asked(upstream, engine) == b"ab"
        assert engine.connections == 1
        assert await asyncio.gather(*(asked(upstream, engine) for _ in range(5))) == [b"ab"] * 5
        assert engine.connections == 5


@pytest.mark.parametrize(
    "said",
    [
        [OK + b"content-length: 0\r\n\r\n"],
        [b"HTTP/1.1 204 No Content\r\n\r\n"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" + AB],
        [OK + b"transfer-encoding: chunked\r\n\r\n", b'1\r\na\r\n1;ext="x"\r\nb\r\n', b"0\r\nx-trailer: 1\r\n\r\n"],
        [bytes([byte]) for byte in AB],
        [OK + b"Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"],
    ],
)
async def test_an_answer_in_any_proper_form_is_read_and_its_connection_used_again(
    upstream: Upstream, said: list[bytes]
) -> None:
    async with faulty_engine(saying(*said)) as engine:
        assert await asked(upstream, engine) in (b"", b"ab")
        assert await asked(upstream, engine) == b"ab"
        assert engine.connections == 1


async def test_parts_of_a_stream_arrive_one_by_one(upstream: Upstream) -> None:
    head = OK + b"transfer-encoding: chunked\r\n\r\n"
    async with faulty_engine(saying(head, b"3\r\none\r\n", b"3\r\ntwo\r\n", b"5\r\nth", b"ree\r\n0\r\n\r\n")) as engine:
        assert await read_all(upstream, engine) == [b"one", b"two", b"th", b"ree"]


@pytest.mark.parametrize(
    "said",
    [
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        OK + b"content-length: 2, 2\r\n\r\nab",
        OK + b"content-length: -2\r\n\r\nab",
        OK + b"content-length : 2\r\n\r\nab",
        OK + b"transfer-encoding: chunked, identity\r\n\r\nab",
        OK + b"transfer-encoding: gzip\r\n\r\nab",
        OK + b"\r\nab",
        OK + b"x: a\x00b\r\ncontent-length: 2\r\n\r\nab",
        OK + b"transfer-encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nab\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nab",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        OK + b"x-long: " + b"v" * 100_000 + b"\r\ncontent-length: 0\r\n\r\n",
    ],
)
async def test_an_answer_that_can_be_read_in_two_ways_or_in_none_is_refused_with_its_connection(
    upstream: Upstream, said: bytes
) -> None:
    async with faulty_engine(saying(said, ends=True)) as engine:
        with pytest.raises(EngineFault):
            await asked(upstream, engine)
        assert await asked(upstream, engine) == b"ab"
        assert engine.connections == 2


@pytest.mark.parametrize("header", [b"connection: close\r\n", b"Connection: keep-alive, Close\r\n"])
async def test_a_connection_that_is_to_be_closed_is_not_used_again(upstream: Upstream, header: bytes) -> None:
    async with faulty_engine(saying(OK + header + b"content-length: 2\r\n\r\nab")) as engine:
        assert [await asked(upstream, engine) for _ in range(2)] == [b"ab", b"ab"]
        assert engine.connections == 2


async def test_a_connection_closed_while_idle_is_replaced(upstream: Upstream) -> None:
    async with faulty_engine(saying(AB, ends=True)) as engine:
        assert await asked(upstream, engine) == b"ab"
        await asyncio.sleep(0.02)
        assert await asked(upstream, engine) == b"ab"
        assert len(engine.requests) == 2


async def test_a_connection_closed_under_a_call_before_any_byte_is_replaced_once(upstream: Upstream) -> None:
    async with faulty_engine(saying(AB), Conversation.hang_up) as engine:
        assert [await asked(upstream, engine) for _ in range(2)] == [b"ab", b"ab"]
        assert [request.connection for request in engine.requests] == [1, 1, 2]


async def test_a_call_is_not_repeated_for_ever(upstream: Upstream) -> None:
    async with faulty_engine(saying(AB), Conversation.hang_up, Conversation.hang_up) as engine:
        await asked(upstream, engine)
        with pytest.raises(EngineDropped):
            await asked(upstream, engine)
        assert len(engine.requests) == 3


async def test_a_new_connection_that_is_closed_without_an_answer_is_not_replaced(upstream: Upstream) -> None:
    async with faulty_engine(Conversation.hang_up) as engine:
        with pytest.raises(EngineDropped):
            await asked(upstream, engine)
        assert len(engine.requests) == 1


async def test_a_call_that_ended_an_engine_does_not_count_as_never_sent(make: Make) -> None:
    async def die(conversation: Conversation) -> None:
        server.close()
        await conversation.hang_up(hard=True)

    engine = FaultyEngine([saying(AB), die])
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0)
    engine.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with make() as upstream:
        await asked(upstream, engine)
        with pytest.raises(EngineDropped):
            await asked(upstream, engine)


@pytest.mark.parametrize(
    "framing", [b"content-length: 10\r\n\r\nhalf", b"transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
)
async def test_an_answer_that_breaks_off_gives_what_came_and_then_says_so(upstream: Upstream, framing: bytes) -> None:
    async with faulty_engine(saying(OK + framing, ends=True)) as engine:
        answer = await upstream.send(engine.call())
        assert await answer.read() == b"half"
        with pytest.raises(EngineBroken):
            await answer.read()
        answer.close()
        assert await asked(upstream, engine) == b"ab"


async def test_half_an_answer_is_never_a_whole_one(upstream: Upstream) -> None:
    async with faulty_engine(saying(OK + b"content-length: 10\r\n\r\nhalf", ends=True)) as engine:
        with pytest.raises(EngineBroken):
            await asked(upstream, engine)


@pytest.mark.parametrize(
    "said", [b"", OK, OK + b"content-length: 2\r\n\r\n", OK + b"content-length: 2\r\n\r\na"], ids=len
)
async def test_an_engine_that_falls_silent_is_left(make: Make, said: bytes) -> None:
    left: list[bool] = []

    async def stall(conversation: Conversation) -> None:
        await conversation.say(said)
        left.append(await conversation.is_left())

    async with faulty_engine(stall) as engine, make(silence_s=0.1) as upstream:
        with pytest.raises(EngineSilent):
            await asked(upstream, engine)
        await asyncio.sleep(0.02)
        assert left == [True]


async def test_silence_is_counted_from_the_last_byte(make: Make) -> None:
    drops = saying(OK + b"content-length: 10\r\n\r\n", *[b"x"] * 10, pause_s=0.03)
    async with faulty_engine(drops) as engine, make(silence_s=0.2) as upstream:
        assert await asked(upstream, engine) == b"x" * 10


async def test_an_engine_that_is_not_there_is_unreachable(upstream: Upstream) -> None:
    for url in (f"http://127.0.0.1:{free_port()}", "http://127.0.0.1:99999", "ftp://127.0.0.1", "", "http://a b/"):
        with pytest.raises(EngineUnreachable):
            await upstream.send(EngineCall(url, "/v1/completions", {}, b"{}"))


@pytest.mark.parametrize("cut", ["before the answer", "within the answer"])
async def test_giving_a_call_up_closes_its_connection(upstream: Upstream, cut: str) -> None:
    left = asyncio.get_running_loop().create_future()

    async def stream(conversation: Conversation) -> None:
        if cut == "within the answer":
            await conversation.say(OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        left.set_result(await conversation.is_left())

    async with faulty_engine(stream) as engine:
        call = asyncio.create_task(asked(upstream, engine))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.wait_for(left, 2)
        assert await asked(upstream, engine) == b"ab"


async def test_calls_over_the_bound_wait_and_then_fail(make: Make) -> None:
    go_on = asyncio.Event()

    async def wait(conversation: Conversation) -> None:
        await go_on.wait()
        await conversation.say(AB)

    async with faulty_engine(wait, wait) as engine, make(connections=2) as upstream:
        busy = [asyncio.create_task(asked(upstream, engine)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(GatewayBusy):
            await asked(upstream, engine)
        late = asyncio.create_task(asked(upstream, engine))
        await asyncio.sleep(0.02)
        go_on.set()
        assert await asyncio.gather(*busy, late) == [b"ab"] * 3
        assert engine.connections == 2


async def test_an_engine_that_hangs_leaves_connections_to_the_others(make: Make) -> None:
    hung: list[asyncio.Task[bytes]] = []

    async def hang(_: Conversation) -> None:
        await asyncio.Event().wait()

    async with faulty_engine(hang, hang, hang) as engine, faulty_engine() as other, make(connections=4) as upstream:
        hung += [asyncio.create_task(asked(upstream, engine)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(GatewayBusy):
            await asked(upstream, engine)
        assert await asked(upstream, other) == b"ab"
        for call in hung:
            call.cancel()
        await asyncio.gather(*hung, return_exceptions=True)
        assert await asked(upstream, engine) == b"ab"


async def test_no_more_calls_wait_for_a_connection_than_there_are(make: Make) -> None:
    async def hang(_: Conversation) -> None:
        await asyncio.Event().wait()

    async with faulty_engine(hang) as engine, make(connections=1, wait_s=30.0) as upstream:
        waiting = [asyncio.create_task(asked(upstream, engine)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(GatewayBusy):
            await asyncio.wait_for(asked(upstream, engine), 1)
        for call in waiting:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await asked(upstream, engine) == b"ab"


@pytest.mark.parametrize("host", ["a" * 70 + ".invalid", "a..invalid"])
async def test_a_name_that_no_host_can_have_is_unreachable(upstream: Upstream, host: str) -> None:
    with pytest.raises(EngineUnreachable):
        await upstream.send(EngineCall(f"http://{host}:8000", "/", {}, b""))


async def test_failed_and_abandoned_calls_give_their_place_back(make: Make) -> None:
    async with faulty_engine() as engine, make(connections=1) as upstream:
        for _ in range(3):
            with pytest.raises(EngineUnreachable):
                await upstream.send(EngineCall(f"http://127.0.0.1:{free_port()}", "/", {}, b""))
            engine.scripts = [saying(OK + b"content-length: 2\r\n\r\na")]
            answer = await upstream.send(engine.call())
            answer.close()
            answer.close()
            engine.scripts = [Conversation.hang_up, Conversation.hang_up]
            with pytest.raises(EngineDropped):
                await asked(upstream, engine)
            engine.scripts = []
            assert await asked(upstream, engine) == b"ab"


async def test_an_idle_connection_that_is_too_old_is_not_used(make: Make) -> None:
    async with faulty_engine() as engine, make(keepalive_s=0.05) as upstream:
        await asked(upstream, engine)
        await asyncio.sleep(0.15)
        await asked(upstream, engine)
        assert engine.connections == 2


async def test_an_engine_is_held_up_while_nobody_reads(upstream: Upstream) -> None:
    size, sent = 64 * 1024 * 1024, 0

    async def flood(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.say(OK + b"content-length: %d\r\n\r\n" % size)
        while sent < size:
            conversation.writer.write(b"x" * 65536)
            sent += 65536
            await conversation.writer.drain()

    async with faulty_engine(flood) as engine:
        answer = await upstream.send(engine.call())
        await asyncio.sleep(0.2)
        assert sent < size / 2
        read = 0
        while part := await answer.read():
            read += len(part)
        assert read == size
        answer.close()


async def test_what_is_forwarded_comes_in_parts_and_ends(upstream: Upstream) -> None:
    head = OK + b"transfer-encoding: chunked\r\n\r\n"
    parts = [b"3\r\none\r\n", b"3\r\ntwo\r\n", b"5\r\nth", b"ree\r\n0\r\n\r\n"]
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        return data != b"two"

    async with faulty_engine(saying(head, *parts)) as engine:
        answer = await upstream.send(engine.call())
        assert await answer.read() == b"one"
        assert await answer.forward(take) is None
        assert taken == [b"two"]
        await asyncio.sleep(0.03)
        last = await answer.forward(take)
        assert last is not None
        assert b"".join(taken) + last == b"twothree"
        assert await answer.forward(take) == b""
        assert await answer.read() == b""
        answer.close()
        assert await asked(upstream, engine) == b"ab"
        assert engine.connections == 1


async def test_what_is_forwarded_and_breaks_off_says_so_after_all_that_came(upstream: Upstream) -> None:
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        return True

    said = (OK + b"content-length: 10\r\n\r\na", b"b", b"c")
    async with faulty_engine(saying(*said, ends=True)) as engine:
        answer = await upstream.send(engine.call())
        with pytest.raises(EngineBroken):
            await answer.forward(take)
        answer.close()
        assert b"".join(taken) == b"abc"


async def test_an_engine_that_falls_silent_while_it_is_forwarded_is_left(make: Make) -> None:
    async def stall(conversation: Conversation) -> None:
        await conversation.say(OK + b"content-length: 10\r\n\r\na")
        await conversation.is_left()

    async with faulty_engine(stall) as engine, make(silence_s=0.1) as upstream:
        answer = await upstream.send(engine.call())
        with pytest.raises(EngineSilent):
            await answer.forward(lambda _data: True)
        answer.close()


async def test_an_engine_is_held_up_while_what_it_sends_is_not_taken(upstream: Upstream) -> None:
    sent = 0

    async def flood(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.say(OK + b"content-length: %d\r\n\r\n" % (64 * 1024 * 1024))
        while True:
            conversation.writer.write(b"x" * 65536)
            sent += 65536
            await conversation.writer.drain()

    async with faulty_engine(flood) as engine:
        answer = await upstream.send(engine.call())
        assert await answer.forward(lambda _data: False) is None
        await asyncio.sleep(0.2)
        assert sent < 32 * 1024 * 1024
        answer.close()


async def test_a_body_that_the_engine_reads_slowly_arrives_whole(upstream: Upstream) -> None:
    body = bytes(range(256)) * 32 * 1024
    async with faulty_engine() as engine:
        answer = await upstream.send(engine.call(body))
        assert await answer.whole(MOST) == b"ab"
        answer.close()
        assert engine.requests[0].body == body


async def test_an_answer_that_is_too_long_is_refused(upstream: Upstream) -> None:
    async with faulty_engine(saying(OK + b"content-length: 100\r\n\r\n" + b"x" * 100)) as engine:
        answer = await upstream.send(engine.call())
        with pytest.raises(EngineUnreadable):
            await answer.whole(99)
        answer.close()


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\0b"])
async def test_a_header_that_would_be_two_is_never_sent(upstream: Upstream, value: str) -> None:
    async with faulty_engine() as engine:
        with pytest.raises(ValueError, match="ends it"):
            await upstream.send(EngineCall(engine.url, "/", {"x-request-id": value}, b""))
        with pytest.raises(ValueError, match="ends it"):
            await upstream.send(EngineCall(engine.url, f"/v1/completions{value}", {}, b""))
        assert engine.requests == []
