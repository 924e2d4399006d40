"""`python -m gateway` as a process: start, drain, and a Postgres that is really stopped."""

import asyncio
import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.embedded.ports import free_port
from deploy.embedded.postgres import GATEWAY, SUPERUSER, PostgresPasswords, PostgresServer
from gateway.wire.asgi import Send
from tests.integration.gateway.conftest import SCHEMA, acme_client, gateway_process, spawn
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, part, serving, start, until
from tests.unit.gateway.worlds import acme_world, node_row

CHAT = {"model": "support", "prompt": "hi"}


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A Postgres that this test may stop."""
    # Not pytest's own temporary folder: its next run takes that away from the account that Postgres runs under.
    folder = Path(tempfile.mkdtemp(prefix="lorekeeper-gateway-"))
    server = PostgresServer(folder, port=free_port(), passwords=PostgresPasswords.generate(), durable=False)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


async def test_a_missing_setting_is_named_and_ends_the_process() -> None:
    process = await spawn(free_port(), LOREKEEPER_WEB_URL="http://127.0.0.1:1")
    _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode().strip() == "gateway: not set: LOREKEEPER_GATEWAY_DB_URL, LOREKEEPER_GATEWAY_TOKEN"


async def test_a_terminated_gateway_finishes_its_streams_and_writes_its_records(
    engine: StubEngine, plane: Plane, routing: Routing
) -> None:
    async def answer(body: dict[str, Any], send: Send) -> None:
        await start(send, media="text/event-stream")
        for number in range(10):
            await part(send, f"data: {json.dumps({'model': body['model'], 'n': number})}\n\n".encode())
            await asyncio.sleep(0.1)
        await part(send, b"data: [DONE]\n\n", more=False)

    engine.answer = answer
    async with gateway_process(routing.gateway_url, plane.url) as (process, url), acme_client(url) as client:
        received = b""
        async with client.stream("POST", "/v1/completions", json={**CHAT, "stream": True}) as response:
            async for chunk in response.aiter_raw():
                if not received:
                    process.send_signal(signal.SIGTERM)
                received += chunk
        assert received.count(b"\n\n") == 11
        assert received.endswith(b"data: [DONE]\n\n")
        assert await asyncio.wait_for(process.wait(), 10) == 0
    (record,) = await routing.records()
    assert (record["status"], record["error_kind"]) == (200, "")


async def test_a_stopped_postgres_is_survived_and_recognised_when_it_is_back(
    own_postgres: PostgresServer, plane: Plane
) -> None:
    superuser_url = own_postgres.url(SUPERUSER)
    engine = StubEngine()
    async with serving(engine) as engine_url:
        async with await psycopg.AsyncConnection.connect(superuser_url, autocommit=True) as connection:
            await connection.execute(SCHEMA.encode())
            routing = Routing(connection, "lorekeeper", own_postgres.url(GATEWAY))
            world = acme_world()
            world.nodes[0] = node_row("n1", url=engine_url)
            await routing.put(world)
        async with gateway_process(own_postgres.url(GATEWAY), plane.url) as (_, url), acme_client(url) as client:
            assert (await client.post("/v1/completions", json=CHAT)).status_code == 200
            await asyncio.to_thread(own_postgres.stop)
            statuses = [(await client.post("/v1/completions", json=CHAT)).status_code for _ in range(10)]
            assert statuses == [200] * 10
            await asyncio.to_thread(own_postgres.start)
            async with await psycopg.AsyncConnection.connect(superuser_url, autocommit=True) as connection:
                routing = Routing(connection, "lorekeeper", own_postgres.url(GATEWAY))
                assert len(await routing.records_until(11)) == 11
                await routing.set_aliases()

                async def is_followed() -> bool:
                    return (await client.post("/v1/completions", json=CHAT)).status_code == 404

                await until(is_followed)


async def test_headers_without_an_end_close_the_connection(engine: StubEngine, plane: Plane, routing: Routing) -> None:
    async with gateway_process(routing.gateway_url, plane.url) as (_, url):
        for endless in (b"a\r\nx-n: " + b"a" * 1000, b"a" * 1000):
            _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-0: ")
            with pytest.raises(ConnectionError):
                for _ in range(20_000):
                    writer.write(endless)
                    await writer.drain()
            writer.close()


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: 2\r\ntransfer-encoding: chunked\r\n",
        b"content-length: 2\r\ncontent-length: 3\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"content-length : 2\r\n",
    ],
)
async def test_a_body_whose_length_can_be_read_in_two_ways_is_refused(
    head: bytes, engine: StubEngine, plane: Plane, routing: Routing
) -> None:
    async with gateway_process(routing.gateway_url, plane.url) as (_, url):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: a\r\n" + head + b"\r\n2\r\n{}\r\n0\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1
        writer.close()
