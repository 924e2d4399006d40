import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import httpx
import psycopg
import pytest

from gateway.app import create_app
from gateway.database import connect
from gateway.errors import NotReady
from gateway.routing.current import CurrentSnapshot
from gateway.routing.snapshot import Alias, RoutingSnapshot
from gateway.routing.source import SnapshotSource
from gateway.settings import Settings
from tests.integration.gateway.conftest import acme_client, gateway_process, ready
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, serving, until
from tests.unit.gateway.worlds import V1, V2, acme_world, residency_row

CHAT = {"model": "support", "prompt": "hi"}


@pytest.fixture
async def current(routing: Routing) -> AsyncIterator[CurrentSnapshot]:
    """A snapshot kept by a source whose poll never comes."""
    held = CurrentSnapshot()
    task = asyncio.create_task(SnapshotSource(database_url=routing.gateway_url, poll_s=600, current=held).run())
    await until_ready(held)
    # The first read after the listener has come up.
    await asyncio.sleep(0.2)
    yield held
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def target(current: CurrentSnapshot) -> UUID:
    return alias_of(current.get()).version_id


def alias_of(snapshot: RoutingSnapshot) -> Alias:
    alias = snapshot.alias("acme", "support")
    assert alias is not None
    return alias


async def until_seen(current: CurrentSnapshot, version: UUID) -> float:
    async def is_seen() -> bool:
        return target(current) == version

    return await until(is_seen, pause_s=0.001)


async def until_ready(current: CurrentSnapshot) -> None:
    async def is_ready() -> bool:
        return current.is_ready

    await until(is_ready)


async def test_a_committed_move_is_seen_at_once(current: CurrentSnapshot, routing: Routing) -> None:
    took = []
    for revision in range(2, 22):
        version = V2 if revision % 2 == 0 else V1
        await routing.set_aliases(("acme", "support", version, revision))
        took.append(await until_seen(current, version))
        await asyncio.sleep(0.02)
    print(f"\ncommit to snapshot: median {sorted(took)[10] * 1000:.1f} ms, worst {max(took) * 1000:.1f} ms")
    assert max(took) <= 1


async def test_a_burst_of_commits_ends_in_the_last_state(current: CurrentSnapshot, routing: Routing) -> None:
    for revision in range(2, 202):
        await routing.set_aliases(("acme", "support", V2 if revision % 2 == 0 else V1, revision))
    await routing.set_aliases(("acme", "support", V2, 202))

    async def is_last() -> bool:
        return alias_of(current.get()).revision == 202

    took = await until(is_last, pause_s=0.001)
    print(f"\nlast of 200 commits to snapshot: {took * 1000:.1f} ms")
    assert took <= 1


async def test_a_lost_notification_is_healed_by_the_poll(routing: Routing) -> None:
    current = CurrentSnapshot()
    source = SnapshotSource(database_url=routing.gateway_url, poll_s=0.3, current=current)
    task = asyncio.create_task(source.run())
    await until_ready(current)
    await asyncio.sleep(0.2)
    await routing.set_aliases(("acme", "support", V2, 2), notify=False)
    took = await until_seen(current, V2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print(f"\na change without notification was seen after {took:.2f} s of a poll each 0.3 s")
    assert took < 1


async def test_the_last_snapshot_stays_while_the_database_is_away_and_is_renewed_after(
    current: CurrentSnapshot, routing: Routing
) -> None:
    await routing.go_away()
    try:
        await asyncio.sleep(0.3)
        assert target(current) == V1
        await routing.set_aliases(("acme", "support", V2, 2))
        await asyncio.sleep(0.2)
        assert target(current) == V1
    finally:
        await routing.come_back()
    took = await until_seen(current, V2)
    print(f"\nback in step {took:.2f} s after the database came back")
    await routing.set_aliases(("acme", "support", V1, 3))
    assert await until_seen(current, V1) <= 3


async def test_a_read_is_of_one_moment(routing: Routing) -> None:
    """Version and alias are always changed together; no snapshot may show one without the other."""
    current = CurrentSnapshot()
    source = SnapshotSource(database_url=routing.gateway_url, poll_s=0.001, current=current)
    task = asyncio.create_task(source.run())
    await until_ready(current)
    world, torn = acme_world(), 0
    rows = {V1: world.versions[0], V2: world.versions[1]}
    for revision in range(2, 102):
        version = V2 if revision % 2 == 0 else V1
        async with routing.connection.transaction():
            await routing._replace("routing_aliases", [("acme", "support", version, revision)])
            await routing._replace("routing_versions", [rows[version]])
        snapshot = current.get()
        torn += alias_of(snapshot).version_id not in snapshot.versions
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert torn == 0


async def test_a_gateway_without_a_database_is_not_ready(gateway_settings: Settings) -> None:
    nowhere = replace(gateway_settings, database_url="postgresql://127.0.0.1:1/none")
    async with serving(create_app(nowhere), lifespan="on") as url, acme_client(url) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503
        response = await client.post("/v1/completions", json=CHAT)
        assert (response.status_code, response.json()["error"]["code"]) == (503, NotReady.code)
        assert response.headers["retry-after"] == "1"


async def test_requests_are_served_and_records_kept_while_the_database_is_away(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    await routing.go_away()
    try:
        for _ in range(20):
            assert (await client.post("/v1/completions", json=CHAT)).status_code == 200
        assert (await client.get("/readyz")).json()["ready"]
        assert await routing.records() == []
    finally:
        await routing.come_back()
    records = await routing.records_until(20)
    assert len({record["request_id"] for record in records}) == len(records) == 20


@pytest.fixture
async def process_client(engine: StubEngine, plane: Plane, routing: Routing) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway in a process of its own, so that the test's own work doesn't slow it down."""
    await routing.set_residencies(*(residency_row("n1", version) for version in acme_world().versions[:2]))
    async with gateway_process(routing.gateway_url, plane.url) as (_, url), acme_client(url) as made:
        yield made


async def test_an_alias_moved_under_load_fails_no_request_and_is_followed_at_once(
    process_client: httpx.AsyncClient, routing: Routing
) -> None:
    answers: list[tuple[float, float, int, str]] = []
    stop = False

    async def ask_on() -> None:
        while not stop:
            began = time.monotonic()
            response = await process_client.post("/v1/completions", json=CHAT)
            seen = response.headers.get("x-lorekeeper-version", "")
            answers.append((began, time.monotonic(), response.status_code, seen))

    askers = [asyncio.create_task(ask_on()) for _ in range(16)]
    moves: list[tuple[float, float, str]] = []
    for revision in range(2, 8):
        await asyncio.sleep(0.4)
        version, label = (V2, "v2") if revision % 2 == 0 else (V1, "v1")
        before = time.monotonic()
        await routing.set_aliases(("acme", "support", version, revision))
        moves.append((before, time.monotonic(), f"acme/support-tone@{label}"))
    await asyncio.sleep(0.4)
    stop = True
    await asyncio.gather(*askers)
    assert {status for _, _, status, _ in answers} == {200}
    nexts = [before for before, _, _ in moves[1:]] + [float("inf")]
    late = [
        began - committed
        for (_, committed, label), following in zip(moves, nexts, strict=True)
        for began, ended, _, seen in answers
        if committed < began and ended < following and seen != label
    ]
    worst = max(late, default=0.0)
    print(f"\n{len(answers)} requests over 6 moves; the last old answer began {worst * 1000:.0f} ms after a commit")
    assert worst <= 0.3


async def test_the_gateways_role_can_read_the_views_and_append_records_and_nothing_else(routing: Routing) -> None:
    await routing.connection.execute("CREATE TABLE IF NOT EXISTS anything (secret text)")
    async with await connect(routing.gateway_url, purpose="test") as connection:
        for view in ("aliases", "versions", "nodes", "residencies", "tokens"):
            await connection.execute(f"SELECT * FROM routing_{view}".encode())
        for refused in (
            "SELECT * FROM anything",
            "SELECT * FROM gateway_request",
            "UPDATE gateway_request SET status = 200",
            "DELETE FROM gateway_request",
            "TRUNCATE gateway_request",
            "DELETE FROM routing_aliases",
            "UPDATE routing_aliases SET revision = 9",
            "INSERT INTO routing_aliases VALUES ('acme', 'x', NULL, 1)",
            "CREATE TABLE mine (a int)",
            "DROP TABLE gateway_request",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute(refused.encode())


async def test_two_gateways_follow_the_same_move(
    gateway_url: str, gateway_settings: Settings, routing: Routing, engine: StubEngine
) -> None:
    world = acme_world()
    await routing.set_residencies(*(residency_row("n1", version) for version in world.versions[:2]))
    async with serving(create_app(gateway_settings), lifespan="on") as other_url:
        await ready(other_url)
        await asyncio.sleep(0.2)
        await routing.set_aliases(("acme", "support", V2, 2))
        await asyncio.sleep(0.5)
        for url in (gateway_url, other_url):
            async with acme_client(url) as client:
                response = await client.post("/v1/completions", json=CHAT)
                assert response.headers["x-lorekeeper-version"] == "acme/support-tone@v2"
