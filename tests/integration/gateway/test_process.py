"""`python -m gateway` as a process: start, drain, and a Postgres that is really stopped."""

import asyncio
import json
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
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


def processes_of(parent: int) -> set[int]:
    return {child.pid for child in psutil.Process(parent).children()}


async def answered_by(url: str) -> str:
    """The beginning of the id that a request got: each process has its own."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{url}/healthz")).headers["x-lorekeeper-request-id"][:24]


@pytest.mark.e2e
async def test_processes_behind_one_port_serve_count_and_end_together_and_one_that_dies_is_replaced(
    engine: StubEngine, plane: Plane, routing: Routing
) -> None:
    more = {"LOREKEEPER_GATEWAY_PROCESSES": "2", "LOREKEEPER_GATEWAY_METRICS_TOKEN": "a-token"}
    async with gateway_process(routing.gateway_url, plane.url, **more) as (process, url), acme_client(url) as client:

        async def both_answer() -> bool:
            return len({await answered_by(url) for _ in range(8)}) == 2

        async def figures() -> str:
            async with httpx.AsyncClient(trust_env=False, headers={"authorization": "Bearer a-token"}) as scraper:
                return (await scraper.get(f"{url}/metrics")).text

        async def counted(number: int) -> bool:
            page = await figures()
            return f'requests_total{{error="",path="completions",status="200"}} {number}.0' in page

        async def both_counted() -> bool:
            return all([await counted(10) for _ in range(8)])

        await until(both_answer, seconds=30)
        assert (await client.get("/metrics")).status_code == 401
        for _ in range(10):
            async with acme_client(url) as fresh:
                assert (await fresh.post("/v1/completions", json=CHAT)).status_code == 200
        # By whichever of them says so: then what the other has counted is on its page, and outlives it.
        await until(both_counted, seconds=30)
        assert "lorekeeper_gateway_processes 2.0" in await figures()
        before = processes_of(process.pid)
        psutil.Process(min(before)).kill()

        async def is_replaced() -> bool:
            return len(processes_of(process.pid)) == 2 and not before >= processes_of(process.pid)

        await until(is_replaced, seconds=30)
        await until(both_answer, seconds=30)
        await until(lambda: counted(10), seconds=30)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    assert not [child for child in before if psutil.pid_exists(child)]


@pytest.mark.e2e
async def test_processes_end_with_a_parent_that_was_killed(engine: StubEngine, plane: Plane, routing: Routing) -> None:
    two = {"LOREKEEPER_GATEWAY_PROCESSES": "2"}
    async with gateway_process(routing.gateway_url, plane.url, **two) as (process, _):
        children = processes_of(process.pid)
        assert len(children) == 2
        process.kill()

        async def are_gone() -> bool:
            return not any(
                psutil.pid_exists(child) and psutil.Process(child).status() != "zombie" for child in children
            )

        await until(are_gone, seconds=10)


async def test_the_end_is_announced_before_it_comes(engine: StubEngine, plane: Plane, routing: Routing) -> None:
    notice = {"LOREKEEPER_GATEWAY_DRAIN_NOTICE": "0.5"}
    async with gateway_process(routing.gateway_url, plane.url, **notice) as (process, url), acme_client(url) as client:
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        said = await client.get("/readyz")
        assert (said.status_code, said.json()["draining"]) == (503, True)
        assert (await client.post("/v1/completions", json=CHAT)).status_code == 200
        assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_a_port_that_is_taken_is_named_and_ends_the_process(routing: Routing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = await spawn(
            taken.getsockname()[1],
            LOREKEEPER_GATEWAY_DB_URL=routing.gateway_url,
            LOREKEEPER_WEB_URL="http://127.0.0.1:1",
            LOREKEEPER_GATEWAY_TOKEN="lk_gateway",
        )
        _, said = await process.communicate()
    assert process.returncode == 1
    assert "Address already in use" in said.decode()
