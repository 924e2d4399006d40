"""The server's protocol, byte by byte: what stands on the wire for each kind of answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from gateway.app import App
from gateway.errors import ClientGone
from gateway.wire import protocol
from gateway.wire.connection import Request, Responder
from tests.integration.gateway.stubs import serving

Answer = Callable[[Request, Responder], Coroutine[Any, None, None]]
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: a\r\n"
HELLO = b"HTTP/1.1 200 OK\r\nx-a: 1\r\nx-lorekeeper-request-id: r\r\ncontent-length: 5\r\n\r\nhello"


async def hello(_: Request, responder: Responder) -> None:
    await responder.whole(200, {b"x-a": b"1"}, b"hello")


@asynccontextmanager
async def talking(answer: Answer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    def handle(request: Request) -> Coroutine[Any, None, None]:
        return answer(request, Responder(request.connection, request_id="r", patience_s=0.2))

    app = App(AsyncExitStack())  # type: ignore[arg-type]  # no service: requests are answered as this test wants
    app.reception.handle = handle
    async with serving(app) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        yield reader, writer
        writer.transport.abort()
        await asyncio.sleep(0.01)


async def test_a_whole_answer_has_its_length_and_leaves_the_connection_open() -> None:
    async with talking(hello) as (reader, writer):
        for _ in range(2):
            writer.write(GET)
            assert await reader.readexactly(len(HELLO)) == HELLO


async def test_an_answer_that_is_there_goes_out_although_the_client_ends_its_side_in_the_same_round() -> None:
    async def in_the_same_round(request: Request, responder: Responder) -> None:
        await hello(request, responder)
        # As the loop does it: it tells of the end, and closes.
        request.connection.eof_received()  # type: ignore[attr-defined]
        request.connection._transport.close()  # type: ignore[attr-defined]

    async with talking(in_the_same_round) as (reader, writer):
        writer.write(GET)
        assert await reader.read() == HELLO


async def test_an_answer_in_parts_is_chunked() -> None:
    async def parts(_: Request, responder: Responder) -> None:
        await responder.start(200, {})
        responder.connection.write(b"one")
        responder.connection.write(b"x" * 16)
        responder.finish()

    async with talking(parts) as (reader, writer):
        writer.write(GET + GET)
        said = await reader.readuntil(b"0\r\n\r\n")
        assert said.endswith(b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n10\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n")
        assert await reader.readuntil(b"0\r\n\r\n") == said


async def test_pipelined_requests_are_answered_in_their_order_one_after_another() -> None:
    running = 0

    async def number(request: Request, responder: Responder) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0.01 if request.path == "/1" else 0)
        running -= 1
        await responder.whole(200, {}, request.path.encode())

    async with talking(number) as (reader, writer):
        writer.write(b"".join(b"GET /%d HTTP/1.1\r\nhost: a\r\n\r\n" % number for number in range(1, 4)))
        for expected in (b"/1", b"/2", b"/3"):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(2) == expected


@pytest.mark.parametrize(
    "request_", [b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", b"GET / HTTP/1.0\r\nhost: a\r\n\r\n"]
)
async def test_a_connection_that_is_to_be_closed_is_closed_and_says_so(request_: bytes) -> None:
    async with talking(hello) as (reader, writer):
        writer.write(request_)
        said = await asyncio.wait_for(reader.read(), 5)
        assert b"connection: close\r\n" in said
        assert said.endswith(b"\r\n\r\nhello")


async def test_an_answer_can_close_its_connection() -> None:
    async def refuse(_: Request, responder: Responder) -> None:
        await responder.whole(408, {}, b"late", closes=True)

    async with talking(refuse) as (reader, writer):
        writer.write(GET)
        said = await asyncio.wait_for(reader.read(), 5)
        assert said.count(b"connection: close") == 1


async def test_a_head_request_gets_the_head_alone() -> None:
    async with talking(hello) as (reader, writer):
        writer.write(GET.replace(b"GET", b"HEAD") + GET)
        assert await reader.readexactly(len(HELLO) - 5 + len(HELLO)) == HELLO[:-5] + HELLO


@pytest.mark.parametrize("value", [b"a\r\nx-evil: 1", b"a\nb", b"a\rb", b"a\0b"])
async def test_a_header_that_would_be_two_is_never_sent(value: bytes) -> None:
    async def inject(_: Request, responder: Responder) -> None:
        with pytest.raises(ValueError, match="ends it"):
            await responder.whole(200, {b"x-a": value}, b"hello")
        responder.status = None
        await responder.whole(200, {b"x-a": b"1"}, b"hello")

    async with talking(inject) as (reader, writer):
        writer.write(GET)
        assert await reader.readexactly(len(HELLO)) == HELLO


async def test_a_client_that_reads_nothing_is_held_up_and_then_dropped() -> None:
    written = asyncio.get_running_loop().create_future()

    async def flood(_: Request, responder: Responder) -> None:
        await responder.start(200, {})
        size = 0
        try:
            while True:
                await responder.drained()
                responder.connection.write(b"x" * 65536)
                size += 65536
        except ClientGone:
            written.set_result(size)

    async with talking(flood) as (reader, writer):
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(GET)
        assert await asyncio.wait_for(written, 10) < 64 * 1024 * 1024


async def test_a_client_that_leaves_ends_the_work_for_it() -> None:
    ended = asyncio.get_running_loop().create_future()

    async def work(request: Request, _: Responder) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.set_result(request.connection.is_gone)
            raise

    async with talking(work) as (_, writer):
        writer.write(GET)
        await asyncio.sleep(0.02)
        writer.close()
        assert await asyncio.wait_for(ended, 2)


@pytest.mark.parametrize("is_at_once", [True, False])
async def test_a_client_that_leaves_after_a_large_body_ends_the_work_for_it(is_at_once: bool) -> None:
    begun, read, ended = (asyncio.Event() for _ in range(3))

    async def work(request: Request, _: Responder) -> None:
        begun.set()
        while not request.is_whole:
            await request.more()
            request.take()
        read.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.set()
            raise

    async with talking(work) as (_, writer), asyncio.timeout(5):
        head, body = POST + b"content-length: 200000\r\n\r\n", b"x" * 200_000
        if is_at_once:
            writer.write(head + body)
        else:
            writer.write(head)
            await begun.wait()
            writer.write(body)
        await read.wait()
        writer.close()
        await ended.wait()


async def test_a_head_that_comes_too_slowly_and_a_connection_without_one_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "_HEAD_TIMEOUT_S", 0.1)
    async with talking(hello) as (reader, writer):
        writer.write(GET[:-2])
        head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert json.loads(body)["error"]["code"] == "head_too_slow"
    async with talking(hello) as (reader, _):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    async with talking(hello) as (reader, writer):
        writer.write(GET)
        assert await reader.readexactly(len(HELLO)) == HELLO
        writer.write(GET[:-2])
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 408 ")
        # The connection was used before: its next head has as long as the first.


async def test_rubbish_after_a_request_does_not_get_into_its_answer() -> None:
    go_on = asyncio.Event()

    async def slowly(_: Request, responder: Responder) -> None:
        await responder.start(200, {})
        responder.connection.write(b"half")
        await go_on.wait()
        responder.finish()

    async with talking(slowly) as (reader, writer):
        writer.write(GET)
        await reader.readuntil(b"half\r\n")
        writer.write(b"\x00rubbish\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        go_on.set()


async def test_a_body_that_nobody_reads_is_not_taken_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_MOST_UNREAD", 1_000_000)
    async with talking(hello) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n")
        assert await reader.readexactly(len(HELLO)) == HELLO
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                writer.write(b"x" * 100_000)
                await writer.drain()


async def test_headers_without_an_end_close_the_connection() -> None:
    for endless in (b"a\r\nx-n: " + b"a" * 1000, b"a" * 1000):
        async with talking(hello) as (_, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nx-0: ")
            with pytest.raises(ConnectionError):
                for _ in range(20_000):
                    writer.write(endless)
                    await writer.drain()


CHUNKED = POST + b"authorization: mine\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"
ENDLESS = {
    "trailers": b"0\r\n" + b"x-t: 1\r\n" * 100_000,
    "a trailer": b"0\r\nx-t: " + b"t" * 1_000_000,
    "a trailer's name": b"0\r\n" + b"t" * 1_000_000,
    "an extension": b"1;" + b"e" * 1_000_000,
}


@pytest.mark.parametrize("rest", ENDLESS.values(), ids=ENDLESS.keys())
async def test_what_follows_a_body_without_an_end_closes_the_connection(rest: bytes) -> None:
    async def wait(request: Request, _: Responder) -> None:
        while not request.is_whole:
            await request.more()
            request.take()

    async with talking(wait) as (reader, writer):
        writer.write(CHUNKED + rest)
        try:
            said = await asyncio.wait_for(reader.read(), 5)
        except ConnectionError:  # closed with bytes unread: the refusal may be lost
            return
        assert said == b"" or said.startswith(b"HTTP/1.1 431 ")


async def test_what_follows_a_refused_body_without_an_end_closes_the_connection_and_gets_no_second_answer() -> None:
    async with talking(hello) as (reader, writer):
        writer.write(CHUNKED)
        assert await reader.readexactly(len(HELLO)) == HELLO
        writer.write(ENDLESS["a trailer"])
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_a_trailer_is_no_header() -> None:
    async def tell(request: Request, responder: Responder) -> None:
        while not request.is_whole:
            await request.more()
            request.take()
        await responder.whole(200, {}, json.dumps(dict(request.headers)).encode())

    async with talking(tell) as (reader, writer):
        for cut in (0, 12):
            rest = b"0\r\nauthorization: another\r\nx-t: 1\r\n\r\n"
            writer.write(CHUNKED + rest[:cut])
            await asyncio.sleep(0.01)
            writer.write(rest[cut:])
            await reader.readuntil(b"\r\n\r\n")
            said = json.loads(await reader.readuntil(b"}"))
            assert said == {"host": "a", "authorization": "mine", "transfer-encoding": "chunked"}


@pytest.mark.parametrize(
    ("said", "status"),
    [(b"\x16\x03\x01\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000, 431)],
    ids=["tls", "long"],
)
async def test_what_is_no_request_is_refused_in_openais_form(said: bytes, status: int) -> None:
    async with talking(hello) as (reader, writer):
        writer.write(said)
        head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: 2\r\ntransfer-encoding: chunked\r\n",
        b"content-length: 2\r\ncontent-length: 3\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"content-length : 2\r\n",
    ],
)
async def test_a_body_whose_length_can_be_read_in_two_ways_is_refused(head: bytes) -> None:
    async with talking(hello) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\n" + head + b"\r\n2\r\n{}\r\n0\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1
