import asyncio
import json

import pytest

from gateway.errors import EngineBroken, EngineUnreadable, VersionMismatch
from gateway.upstream.answers import Seen, Usage
from gateway.upstream.relay import relay
from tests.unit.gateway.fakes import JSON_MEDIA, SSE_MEDIA, Client, FakeAnswer, answer, said_by

MINE = "lk-mine"


def chunk(model: str = MINE, **more: object) -> bytes:
    return f"data: {json.dumps({'model': model, **more})}\n\n".encode()


async def relayed(given: FakeAnswer, client: Client) -> Usage:
    return await passed(given, client, Seen())


async def passed(given: FakeAnswer, client: Client, seen: Seen, *, engine_name: str | None = MINE) -> Usage:
    """As `relayed`; `seen` is told what passed."""
    return await relay(
        given,
        engine_name=engine_name,
        responder=client.responder(),
        on_first_byte=lambda: None,
        seen=seen,
    )


async def test_a_json_answer_goes_through_byte_for_byte() -> None:
    body = b'{ "model" : "lk-mine",\n "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "x": "\\u00e9" }\n'
    client = Client()
    assert await relayed(answer(body[:10], body[10:]), client) == Usage(1, 2)
    assert (client.status, client.body, client.complete) == (200, body, True)
    assert client.headers["content-type"] == "application/json"


async def test_a_stream_goes_through_byte_for_byte_in_its_own_chunks() -> None:
    chunks = [b": ping\n\n", chunk()[:9], chunk()[9:], chunk(text="a") + chunk(text="b")[:5], chunk(text="b")[5:]]
    chunks += [chunk(usage={"prompt_tokens": 1, "completion_tokens": 2}), b"data: [DONE]\n\n"]
    client = Client()
    assert await relayed(answer(*chunks, headers=SSE_MEDIA), client) == Usage(1, 2)
    assert client.body == b"".join(chunks)
    assert client.connection.parts == [b"".join(chunks[:3]), *chunks[3:]]
    assert client.complete
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_the_usage_of_a_stream_is_found_however_its_bytes_are_cut() -> None:
    stream = chunk() + chunk(usage={"prompt_tokens": 7, "completion_tokens": 9}) + b"data: [DONE]\n\n"
    crumbs = [bytes([byte]) for byte in stream]
    client = Client()
    assert await relayed(answer(*crumbs, headers=SSE_MEDIA), client) == Usage(7, 9)
    assert client.body == stream


async def test_the_usage_of_a_stream_longer_than_what_is_kept_of_it_is_found() -> None:
    long = [chunk(text="x" * 1000) for _ in range(300)]
    last = chunk(usage={"prompt_tokens": 7, "completion_tokens": 9})
    assert await relayed(answer(*long, last, headers=SSE_MEDIA), Client()) == Usage(7, 9)


async def test_the_events_of_a_stream_that_passed_are_counted_however_it_ends() -> None:
    whole, broken, document = Seen(), Seen(), Seen()
    await passed(answer(chunk(), chunk() * 3, b"data: [DONE]\n\n", headers=SSE_MEDIA), Client(), whole)
    with pytest.raises(EngineBroken):
        await passed(answer(*[chunk()] * 4, headers=SSE_MEDIA, breaks=True), Client(), broken)
    await passed(said_by(MINE), Client(), document)
    assert (whole.events(), broken.events(), document.events()) == (5, 4, 0)


async def test_nothing_is_sent_of_a_json_answer_by_another_version() -> None:
    client = Client()
    with pytest.raises(VersionMismatch):
        await relayed(said_by("base"), client)
    assert not client.sent


async def test_nothing_is_sent_of_a_stream_by_another_version() -> None:
    client = Client()
    with pytest.raises(VersionMismatch):
        await relayed(answer(chunk("base"), chunk("base"), headers=SSE_MEDIA), client)
    assert not client.sent


async def test_headers_of_the_engine_that_are_not_for_clients_stay_behind() -> None:
    client = Client()
    given = answer(
        chunk(), headers={**SSE_MEDIA, b"server": b"uvicorn", b"connection": b"close", b"set-cookie": b"a=b"}
    )
    await relayed(given, client)
    assert set(client.headers) == {"content-type", "x-lorekeeper-request-id"}


async def test_a_stream_that_breaks_is_left_unfinished() -> None:
    client = Client()
    with pytest.raises(EngineBroken):
        await relayed(answer(chunk(), chunk(text="a"), headers=SSE_MEDIA, breaks=True), client)
    assert client.body == chunk() + chunk(text="a")
    assert not client.complete


async def test_a_json_answer_that_breaks_is_not_begun() -> None:
    client = Client()
    with pytest.raises(EngineBroken):
        await relayed(answer(b'{"model":', breaks=True), client)
    assert not client.sent


@pytest.mark.parametrize("chunks", [[], [b": ping\n\n"], [b"data: {"], [b"x" * 600_000] * 3])
async def test_a_stream_without_an_event_to_check_is_not_passed_on(chunks: list[bytes]) -> None:
    client = Client()
    with pytest.raises(EngineUnreadable):
        await relayed(answer(*chunks, headers=SSE_MEDIA), client)
    assert not client.sent


async def test_a_compressed_answer_is_not_passed_on() -> None:
    client = Client()
    with pytest.raises(EngineUnreadable):
        await relayed(answer(b"\x1f\x8b", headers={**JSON_MEDIA, b"content-encoding": b"gzip"}), client)
    assert not client.sent


async def test_an_answer_of_another_media_type_is_not_passed_on() -> None:
    client = Client()
    with pytest.raises(EngineUnreadable):
        await relayed(answer(b"<html>", headers={b"content-type": b"text/html"}), client)
    assert not client.sent


async def test_a_stream_of_crumbs_without_an_event_is_given_up() -> None:
    crumbs = answer(*[b":"] * 5000, headers=SSE_MEDIA)
    with pytest.raises(EngineUnreadable):
        await relayed(crumbs, Client())
    assert crumbs.chunks


async def test_a_client_that_is_slow_is_waited_for() -> None:
    client = Client()
    client.connection.is_slow = True
    relaying = asyncio.create_task(relayed(answer(chunk(), b"data: [DONE]\n\n", headers=SSE_MEDIA), client))
    await asyncio.sleep(0.01)
    assert not client.sent
    client.connection.has_drained.set()
    await relaying
    assert client.complete


async def test_where_no_answer_names_its_version_any_is_passed_on() -> None:
    for given in (said_by("base"), answer(chunk("base"), headers=SSE_MEDIA)):
        client = Client()
        await passed(given, client, Seen(), engine_name=None)
        assert client.complete
