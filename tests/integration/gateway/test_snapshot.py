import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import httpx
import psycopg
import pytest

from gateway.app import create_app
from gateway.database import Connection, connect
from gateway.errors import NotReady
from gateway.routing.changes import Changed
from gateway.routing.current import CurrentSnapshot
from gateway.routing.reading import Delta, read_delta, read_snapshot
from gateway.routing.snapshot import Alias, RoutingSnapshot
from gateway.routing.source import SnapshotSource
from gateway.settings import Settings
from tests.integration.gateway.conftest import acme_client, gateway_process, ready
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, serving, until
from tests.unit.gateway.worlds import ACME_KEY, V1, V2, acme_world, node_row, residency_row, version_row

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
        for view in ("aliases", "versions", "nodes", "residencies", "tokens", "rules", "cold_rules", "change", "feed"):
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
            "INSERT INTO routing_change (kind, key) VALUES ('aliases', 'acme/x')",
            "UPDATE routing_feed SET forgotten = '0'",
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


async def test_a_loaded_version_is_known_by_its_name_without_a_read_of_anything_else(
    current: CurrentSnapshot, routing: Routing
) -> None:
    """The rest of what is there is as it was, though it has changed meanwhile."""
    version = acme_world().versions[1]
    await routing.set_aliases(notify=False)
    await routing.set_residencies(residency_row("n1", version), notify=False)
    await routing.connection.execute(f"NOTIFY lorekeeper_routing, 'loaded:{V2}'".encode())

    async def is_there() -> bool:
        return bool(current.get().residencies.get(V2))

    await until(is_there, pause_s=0.001)
    assert current.get().residencies.get(V1)
    assert current.get().alias("acme", "support") is not None


async def test_what_was_told_while_a_delta_was_read_does_not_outlive_the_next_one(
    current: CurrentSnapshot, routing: Routing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read before the delta, though the delta began first: the delta knows better."""
    before = current.get().residencies[V1]

    async def read(connection: Connection, *, seen: str) -> Delta | None:
        delta = await read_delta(connection, seen=seen)
        current.tell({V1: before}, read_at=time.monotonic())
        return delta

    monkeypatch.setattr("gateway.routing.source.read_delta", read)
    await routing.set_residencies()
    await asyncio.sleep(0.2)
    monkeypatch.undo()
    current.refresh()

    async def is_gone() -> bool:
        return not current.get().residencies.get(V1)

    await until(is_gone)


@asynccontextmanager
async def reading(routing: Routing) -> AsyncIterator[Connection]:
    """A connection as the source reads with it."""
    async with await connect(routing.gateway_url, purpose="test") as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        yield connection


async def test_a_delta_has_what_was_committed_since_whatever_the_order_of_begin_and_commit(routing: Routing) -> None:
    """A transaction that began first and commits last is neither missed nor waited for."""
    info = routing.connection.info
    slow = await psycopg.AsyncConnection.connect(info.dsn, password=info.password)
    async with slow, reading(routing) as connection:
        await slow.execute("UPDATE routing_aliases SET revision = 7 WHERE alias = 'secret'")
        first = await read_snapshot(connection)
        await routing.connection.execute("UPDATE routing_aliases SET revision = 5 WHERE alias = 'support'")
        second = await read_delta(connection, seen=first.seen)
        assert second is not None
        assert second.changed.aliases == {("acme", "support")}
        await slow.commit()
        third = await read_delta(connection, seen=second.seen)
        assert third is not None
        assert third.changed.aliases == {("other", "secret")}
        await slow.execute("UPDATE routing_aliases SET revision = 9")
        await slow.rollback()
        fourth = await read_delta(connection, seen=third.seen)
        assert fourth is not None
        assert fourth.changed == Changed()
        after = fourth.applied(third.applied(second.applied(first.snapshot)))
        assert after == (await read_snapshot(connection)).snapshot
        assert alias_of(after).revision == 5


async def test_deltas_of_interleaved_transactions_always_come_to_what_a_read_of_everything_finds(
    routing: Routing,
) -> None:
    """Transactions that begin, change, commit and roll back in any order, with a read between any two steps."""
    dice, info = random.Random(20260704), routing.connection.info
    async with AsyncExitStack() as stack:
        opened = [await psycopg.AsyncConnection.connect(info.dsn, password=info.password) for _ in range(3)]
        writers = [await stack.enter_async_context(writer) for writer in opened]
        connection = await stack.enter_async_context(reading(routing))
        names = [f"a{number}" for number in range(3)]
        await routing.set_aliases(*(("acme", name, V1, 1) for name in names))
        read = await read_snapshot(connection)
        snapshot, seen = read.snapshot, read.seen
        for step in range(150):
            # Each writer has its own alias, so that none waits for another's lock.
            number = dice.randrange(3)
            writer, name = writers[number], names[number]
            match dice.randrange(4):
                case 0:
                    await writer.commit()
                case 1:
                    await writer.rollback()
                case _:
                    change = "UPDATE routing_aliases SET revision = %s WHERE alias = %s"
                    await writer.execute(change, [step, name])
            delta = await read_delta(connection, seen=seen)
            assert delta is not None
            snapshot, seen = delta.applied(snapshot), delta.seen
            if step % 10 == 0:
                assert snapshot == (await read_snapshot(connection)).snapshot


async def test_every_kind_of_row_is_read_by_its_key(routing: Routing) -> None:
    world = acme_world()
    async with reading(routing) as connection:
        first = await read_snapshot(connection)
        world.aliases = [("acme", "beta", V2, 1, V1, 500, "salt", ["acme"], [], None, 0)]
        world.versions[1] = version_row(V2, "v2", state="revoked")
        world.nodes, world.residencies = [node_row("n2")], [residency_row("n2", world.versions[0])]
        world.tokens = world.tokens[1:]
        world.rules = [("acme", 60, None, None, None, ["base"], False)]
        world.cold_rules = [("base", "", "base", 2.0, None)]
        await routing.put(world)
        delta = await read_delta(connection, seen=first.seen)
        assert delta is not None
        assert delta.applied(first.snapshot) == world.snapshot()


async def test_a_delta_over_forgotten_changes_or_too_many_is_none(
    routing: Routing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(routing) as connection:
        first = await read_snapshot(connection)
        await routing.set_aliases()
        monkeypatch.setattr("gateway.routing.reading._MOST_NOTES", 1)
        assert await read_delta(connection, seen=first.seen) is None
        monkeypatch.undo()
        assert await read_delta(connection, seen=first.seen) is not None
        forget = "UPDATE routing_feed SET forgotten = (SELECT xid FROM routing_change ORDER BY xid DESC LIMIT 1)"
        try:
            await routing.connection.execute(forget)
            assert await read_delta(connection, seen=first.seen) is None
        finally:
            await routing.connection.execute("UPDATE routing_feed SET forgotten = '0'")


async def test_a_note_that_cannot_be_read_has_everything_read_instead(routing: Routing) -> None:
    async with reading(routing) as connection:
        first = await read_snapshot(connection)
        await routing.connection.execute("INSERT INTO routing_change (kind, key) VALUES ('versions', 'no uuid')")
        try:
            assert await read_delta(connection, seen=first.seen) is None
        finally:
            await routing.connection.execute("DELETE FROM routing_change WHERE key = 'no uuid'")
        second = await read_snapshot(connection, known=first.snapshot)
        assert await read_delta(connection, seen=second.seen) is not None


async def test_a_gap_is_healed_by_a_read_of_everything(current: CurrentSnapshot, routing: Routing) -> None:
    """What was forgotten before it was read is found all the same."""
    async with routing.connection.transaction():
        await routing.set_aliases(("acme", "support", V2, 2))
        await routing.connection.execute("DELETE FROM routing_change")
        await routing.connection.execute("UPDATE routing_feed SET forgotten = pg_current_xact_id()")
    try:
        await until_seen(current, V2)
    finally:
        await routing.connection.execute("UPDATE routing_feed SET forgotten = '0'")


async def test_a_gateway_that_starts_while_the_database_is_away_serves_from_its_copy_and_follows_later(
    gateway_settings: Settings, engine: StubEngine, routing: Routing, tmp_path: Path
) -> None:
    settings = replace(gateway_settings, state_folder=tmp_path / "state")
    copy = tmp_path / "state" / "routing.jsonl"

    async def is_kept() -> bool:
        return copy.exists()

    async with serving(create_app(settings), lifespan="on") as url:
        await ready(url)
        await until(is_kept)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert ACME_KEY.encode() not in copy.read_bytes()
    await routing.go_away()
    try:
        async with serving(create_app(settings), lifespan="on") as url, acme_client(url) as client:
            await ready(url)
            said = (await client.get("/readyz")).json()
            assert (said["source"], said["snapshot_age_s"] >= 0) == ("disk", True)
            assert (await client.post("/v1/completions", json=CHAT)).status_code == 200
            await routing.come_back()

            async def is_of_database() -> bool:
                return bool((await client.get("/readyz")).json()["source"] == "database")

            await until(is_of_database)
    finally:
        await routing.come_back()
