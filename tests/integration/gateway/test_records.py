"""Records on their way to a real database: by COPY, over the disk, and each of them once."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.embedded.ports import free_port
from gateway.database import Connection
from gateway.records import RecordWriter, Spool
from gateway.records.sending import copy_lines
from gateway.records.shapes import Table
from tests.integration.gateway.conftest import acme_client, ready, spawn
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, until
from tests.unit.gateway.records.kit import batch, mark_record, request_record, shadow_record

FLUSH_S = 0.1
LONGER_THAN_A_FIRST_LINE = 100


def make_writer(routing: Routing, folder: Path, *, flush_s: float = FLUSH_S) -> RecordWriter:
    spool = Spool(folder, bound_bytes=1024 * 1024)
    return RecordWriter(database_url=routing.gateway_url, bound=10_000, flush_s=flush_s, spool=spool)


@asynccontextmanager
async def running(writer: RecordWriter) -> AsyncIterator[None]:
    task = asyncio.create_task(writer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        await writer.flush(timeout_s=5)


async def is_on_disk(writer: RecordWriter) -> bool:
    return writer.spooled_bytes > 0 and not writer.pending


async def has_sent_all(writer: RecordWriter) -> bool:
    return writer.spooled_bytes == 0


async def has_written_all(writer: RecordWriter) -> bool:
    return writer.pending == 0


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["request_id"] for row in rows)


async def test_a_record_is_kept_as_it_was_said(routing: Routing, tmp_path: Path) -> None:
    writer = make_writer(routing, tmp_path)
    record = request_record(alias='odd"\\name', node=None, path="chat", side="canary", fallback="base", retries=1)
    shadow, mark = shadow_record(), mark_record(mark=0.1)
    writer.add(record)
    writer.add_shadow(shadow)
    writer.add_mark(mark)
    await writer.flush(timeout_s=5)
    (row,) = await routing.records()
    assert {name: row[name] for name in record._fields} == record._asdict()
    cursor = await routing.connection.execute(f"SELECT {', '.join(shadow._fields)} FROM gateway_shadow".encode())
    assert await cursor.fetchall() == [tuple(shadow)]
    cursor = await routing.connection.execute(f"SELECT {', '.join(mark._fields)} FROM gateway_feedback".encode())
    assert await cursor.fetchall() == [tuple(mark)]


async def test_records_survive_a_database_that_is_away_and_arrive_once(routing: Routing, tmp_path: Path) -> None:
    writer = make_writer(routing, tmp_path)
    async with running(writer):
        writer.add(request_record("before"))
        await routing.records_until(1)
        await routing.go_away()
        try:
            for number in range(3):
                writer.add(request_record(f"away-{number}"))
                await until(lambda: is_on_disk(writer))
        finally:
            await routing.come_back()
        rows = await routing.records_until(4)
        await until(lambda: has_sent_all(writer))
    assert ids(rows) == ["away-0", "away-1", "away-2", "before"]


async def test_records_that_a_hung_database_may_have_kept_are_on_disk_too_and_arrive_once(
    routing: Routing, tmp_path: Path
) -> None:
    writer = make_writer(routing, tmp_path)
    place = routing.connection.info
    async with await psycopg.AsyncConnection.connect(place.dsn, password=place.password) as other:
        await other.execute("LOCK TABLE gateway_request IN SHARE MODE")
        async with running(writer):
            writer.add(request_record("slow"))
            await until(lambda: is_on_disk(writer))
            await other.rollback()
            rows = await routing.records_until(1)
            await until(lambda: has_sent_all(writer))
    assert ids(rows) == ids(await routing.records()) == ["slow"]


async def test_what_was_sent_before_is_left_out_row_by_row(routing: Routing, tmp_path: Path) -> None:
    first, second = make_writer(routing, tmp_path / "1"), make_writer(routing, tmp_path / "2")
    first.add(request_record("a"))
    await first.flush(timeout_s=5)
    for name in ("a", "b"):
        second.add(request_record(name))
    second.add(request_record("a", is_shadow=True))
    await second.flush(timeout_s=5)
    assert ids(await routing.records()) == ["a", "a", "b"]
    assert second.dropped == 0


async def test_a_row_that_is_refused_takes_no_other_with_it(routing: Routing, tmp_path: Path) -> None:
    writer = make_writer(routing, tmp_path)
    for number in range(20):
        writer.add(request_record(f"{number:02}", total_ms=2**40 if number == 7 else 1))
    await writer.flush(timeout_s=5)
    assert ids(await routing.records()) == [f"{number:02}" for number in range(20) if number != 7]
    assert writer.dropped == 1


async def test_what_comes_while_a_batch_is_sent_waits_for_the_next_and_is_never_put_on_the_disk(
    routing: Routing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    async def counted(connection: Connection, table: Table, lines: Sequence[bytes]) -> None:
        await copy_lines(connection, table, lines)
        sent.append(len(lines))

    monkeypatch.setattr("gateway.records.writer.copy_lines", counted)
    writer = make_writer(routing, tmp_path, flush_s=0.8)
    ends, added = time.monotonic() + 2.0, 0
    async with running(writer):
        while time.monotonic() < ends:
            writer.add(request_record(f"{added}"))
            added += 1
            await asyncio.sleep(0.001)
            assert writer.spooled_bytes == 0
    assert sum(sent) == added
    assert len(sent) <= 2.0 / (0.8 / 2) + 2, sent


async def test_a_whole_batch_is_sent_before_its_time(routing: Routing, tmp_path: Path) -> None:
    writer = make_writer(routing, tmp_path, flush_s=600)
    async with running(writer):
        for part in range(3):
            for number in range(2000):
                writer.add(request_record(f"{part}-{number}"))
            await until(lambda: has_written_all(writer))
    assert len(await routing.records()) == 6000


async def test_what_another_process_left_on_the_disk_is_sent(routing: Routing, tmp_path: Path) -> None:
    dead = Spool(tmp_path, bound_bytes=1024 * 1024)
    dead.keep(batch("left", "behind"))
    dead.close()
    async with running(make_writer(routing, tmp_path)):
        assert ids(await routing.records_until(2)) == ["behind", "left"]


async def test_a_gateway_that_is_killed_while_the_database_is_away_loses_no_record_on_disk(
    routing: Routing, engine: StubEngine, plane: Plane, tmp_path: Path
) -> None:
    environment = {
        "LOREKEEPER_GATEWAY_DB_URL": routing.gateway_url,
        "LOREKEEPER_WEB_URL": plane.url,
        "LOREKEEPER_GATEWAY_TOKEN": "lk_gateway",
        "LOREKEEPER_GATEWAY_STATE_FOLDER": str(tmp_path),
    }
    port = free_port()
    killed = await spawn(port, **environment)
    await ready(url := f"http://127.0.0.1:{port}")
    await routing.go_away()
    try:
        async with acme_client(url) as client:
            assert (await client.post("/v1/completions", json={"model": "support", "prompt": "hi"})).status_code == 200
        spool = Spool(tmp_path / "spool", bound_bytes=1024 * 1024)
        await until(lambda: holds_a_batch(spool))
    finally:
        killed.kill()
        await killed.communicate()
        await routing.come_back()
    assert await routing.records() == []
    async with running(make_writer(routing, tmp_path / "spool")):
        (row,) = await routing.records_until(1)
    assert (row["tenant"], row["alias"], row["status"], row["path"]) == ("acme", "support", 200, "completions")


async def holds_a_batch(spool: Spool) -> bool:
    """The process holds its file as long as it lives, so that only the sizes tell."""
    spool.next()
    return spool.bytes > LONGER_THAN_A_FIRST_LINE
