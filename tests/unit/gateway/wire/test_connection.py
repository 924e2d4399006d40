import asyncio

import pytest

from gateway.errors import ClientGone
from gateway.wire.connection import Request, Responder
from tests.unit.gateway.connections import FakeConnection


async def test_a_client_that_takes_nothing_for_too_long_counts_as_gone_and_is_dropped() -> None:
    connection = FakeConnection(is_slow=True)
    responder = Responder(connection, request_id="req-1", patience_s=0.05)
    with pytest.raises(ClientGone):
        await responder.whole(200, {}, b"x")
    assert connection.is_dropped
    assert not responder.started


async def test_headers_said_of_a_request_are_on_whatever_answer_follows_and_the_last_of_a_name_counts() -> None:
    connection = FakeConnection()
    responder = Responder(connection, request_id="req-1")
    responder.annotate({b"x-lorekeeper-node": b"n1", b"x-lorekeeper-tier": b"gpu"})
    responder.annotate({b"x-lorekeeper-node": b"n2"})
    await responder.start(200, {b"content-type": b"text/plain"})
    assert responder.started
    assert connection.headers == {
        b"content-type": b"text/plain",
        b"x-lorekeeper-request-id": b"req-1",
        b"x-lorekeeper-node": b"n2",
        b"x-lorekeeper-tier": b"gpu",
    }


async def test_the_parts_of_an_answer_wait_for_a_client_that_is_slow() -> None:
    connection = FakeConnection()
    responder = Responder(connection, request_id="req-1")
    await responder.start(200, {})
    await responder.drained()
    connection.write(b"a")
    connection.is_slow = True
    asyncio.get_running_loop().call_soon(connection.has_drained.set)
    await responder.drained()
    assert connection.has_drained.is_set()
    connection.write(b"b")
    responder.finish()
    assert (connection.parts, connection.is_complete) == ([b"a", b"b"], True)


async def test_what_answers_is_told_once_the_last_word_counting() -> None:
    connection = FakeConnection()
    responder = Responder(connection, request_id="req-1")
    responder.tell(b"x-lorekeeper-version: v1\r\n")
    responder.tell(b"x-lorekeeper-version: v2\r\nx-lorekeeper-node: n1\r\n")
    await responder.whole(200, {}, b"")
    assert connection.headers == {
        b"x-lorekeeper-request-id": b"req-1",
        b"x-lorekeeper-version": b"v2",
        b"x-lorekeeper-node": b"n1",
        b"content-length": b"0",
    }


async def test_a_body_is_taken_as_it_comes_and_asked_for_only_when_it_is_waited_for() -> None:
    connection = FakeConnection()
    request = Request("POST", "/", {}, connection)
    request.add(b"a")
    request.add(b"b")
    await request.more()
    assert (request.unread, request.take(), request.unread, connection.invited) == (2, b"ab", 0, 0)
    asyncio.get_running_loop().call_soon(request.add, b"c")
    await request.more()
    assert (request.take(), connection.invited) == (b"c", 1)
    asyncio.get_running_loop().call_soon(request.end)
    await request.more()
    assert (request.take(), request.is_whole, connection.invited) == (b"", True, 2)
