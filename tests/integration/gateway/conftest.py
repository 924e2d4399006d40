"""A database with the routing views' shape, stub servers on loopback, and gateways over them."""

import asyncio
import os
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from deploy.embedded.ports import free_port
from deploy.embedded.postgres import GATEWAY, SUPERUSER, PostgresServer
from gateway.app import create_app
from gateway.settings import Settings
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, serving
from tests.unit.gateway.worlds import ACME_KEY, acme_world, node_row

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = (Path(__file__).parent / "routing_schema.sql").read_text()


@pytest.fixture(scope="session")
def routing_database(postgres: PostgresServer) -> Iterator[str]:
    """A database of this session's own, with tables where the real one has views. Its name."""
    name = f"gateway_{secrets.token_hex(6)}"
    identifier = sql.Identifier(name)
    with psycopg.connect(postgres.url(SUPERUSER, database="postgres"), autocommit=True) as superuser:
        superuser.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
        with psycopg.connect(postgres.url(SUPERUSER, database=name), autocommit=True) as connection:
            connection.execute(SCHEMA.encode())
        yield name
        superuser.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


@pytest.fixture
async def routing(postgres: PostgresServer, routing_database: str) -> AsyncIterator[Routing]:
    """The database with the acme world in it and no records."""
    url = postgres.url(SUPERUSER, database=routing_database)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        made = Routing(connection, routing_database, postgres.url(GATEWAY, database=routing_database))
        await connection.execute("TRUNCATE gateway_request, gateway_shadow, gateway_feedback")
        await made.put(acme_world())
        yield made


@pytest.fixture
async def engine(routing: Routing) -> AsyncIterator[StubEngine]:
    """The engine of node n1."""
    stub = StubEngine()
    async with serving(stub) as url:
        stub.url = url
        await routing.set_nodes(node_row("n1", url=url))
        yield stub


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    """The control plane's demand endpoint."""
    stub = Plane()
    async with serving(stub) as url:
        stub.url = url
        yield stub


@pytest.fixture
def gateway_settings(routing: Routing, plane: Plane) -> Settings:
    return Settings(
        database_url=routing.gateway_url,
        web_url=plane.url,
        gateway_token="lk_gateway",
        cold_wait_s=5.0,
        snapshot_poll_s=30.0,
        record_flush_s=0.05,
    )


@pytest.fixture
async def gateway_url(gateway_settings: Settings, engine: StubEngine) -> AsyncIterator[str]:
    """A gateway that has read its first snapshot."""
    async with serving(create_app(gateway_settings), lifespan="on") as url:
        await ready(url)
        yield url


@pytest.fixture
async def client(gateway_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the tenant acme."""
    async with acme_client(gateway_url) as made:
        yield made


def acme_client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=url,
        headers={"authorization": f"Bearer {ACME_KEY}"},
        timeout=20,
        limits=httpx.Limits(max_connections=None),
        trust_env=False,
    )


async def ready(url: str) -> None:
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=20), trust_env=False) as client:
        for _ in range(400):
            if (await client.get(f"{url}/readyz")).status_code == 200:
                # The listener has come up as well by the next read.
                await asyncio.sleep(0.1)
                return
            await asyncio.sleep(0.02)
    pytest.fail("the gateway didn't become ready")


async def spawn(port: int, **environment: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "--host", "127.0.0.1", "--port", str(port)),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=PIPE,
        stderr=PIPE,
    )


@asynccontextmanager
async def gateway_process(database_url: str, web_url: str, **more: str) -> AsyncIterator[tuple[Process, str]]:
    port = free_port()
    process = await spawn(
        port,
        LOREKEEPER_GATEWAY_DB_URL=database_url,
        LOREKEEPER_WEB_URL=web_url,
        LOREKEEPER_GATEWAY_TOKEN="lk_gateway",
        LOREKEEPER_SNAPSHOT_POLL="1",
        **more,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        await ready(url)
        yield process, url
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
