"""The writer where there is no database at all."""

import asyncio
import threading
from pathlib import Path

import pytest

from gateway.records import RecordWriter, Spool
from gateway.records.segments import Batch
from tests.unit.gateway.records.kit import mark_record, request_record, shadow_record

# Closed, so that a connection is refused at once.
NOWHERE = "postgresql://127.0.0.1:1/"
BOUND = 1024 * 1024


def writer(*, bound: int = 100, flush_s: float = 1, spool: Spool | None = None) -> RecordWriter:
    return RecordWriter(database_url=NOWHERE, bound=bound, flush_s=flush_s, spool=spool)


def kept_in(folder: Path) -> list[str]:
    """The tables of the batches in the spool."""
    spool, tables = Spool(folder, bound_bytes=BOUND), []
    while (found := spool.next()) is not None:
        tables.append(found.table.name)
        spool.sent()
    return tables


def test_records_over_the_bound_are_dropped_and_counted() -> None:
    full = writer(bound=3)
    for number in range(5):
        full.add(request_record(f"req-{number}"))
    full.add_shadow(shadow_record())
    assert [full.add_mark(mark_record(f"req-{number}")) for number in range(4)] == [True, True, True, False]
    assert (full.pending, full.dropped) == (7, 3)


def test_a_record_that_cant_be_written_down_is_dropped_and_harms_no_request() -> None:
    broken = writer()
    broken.add(request_record(alias="\ud800"))
    assert (broken.pending, broken.dropped) == (0, 1)


async def test_nothing_to_write_needs_no_database() -> None:
    await writer().flush(timeout_s=1)


async def test_while_the_database_is_away_records_go_to_the_disk(tmp_path: Path) -> None:
    away = writer(flush_s=0.02, spool=Spool(tmp_path, bound_bytes=BOUND))
    running = asyncio.create_task(away.run())
    away.add(request_record("a"))
    away.add_shadow(shadow_record())
    away.add_mark(mark_record())
    async with asyncio.timeout(5):
        while away.pending or not away.spooled_bytes:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    await away.flush(timeout_s=1)
    # One of them twice, if the end came while it was being kept.
    assert set(kept_in(tmp_path)) == {"gateway_request", "gateway_shadow", "gateway_feedback"}


async def test_a_record_is_pending_until_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path, bound_bytes=BOUND)
    away = writer(flush_s=0.02, spool=spool)
    keep, begun, may_end = spool.keep, threading.Event(), threading.Event()

    def slowly(batch: Batch) -> None:
        begun.set()
        assert may_end.wait(5)
        keep(batch)

    monkeypatch.setattr(spool, "keep", slowly)
    running = asyncio.create_task(away.run())
    away.add(request_record("a"))
    assert await asyncio.to_thread(begun.wait, 5)
    assert away.pending == 1
    may_end.set()
    async with asyncio.timeout(5):
        while away.pending:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    spool.close()
    assert kept_in(tmp_path) == ["gateway_request"]


async def test_what_a_stop_cannot_send_is_kept(tmp_path: Path) -> None:
    stopped = writer(spool=Spool(tmp_path, bound_bytes=BOUND))
    stopped.add(request_record("a"))
    await stopped.flush(timeout_s=1)
    assert stopped.pending == 0
    assert kept_in(tmp_path) == ["gateway_request"]


async def test_a_stop_without_a_spool_ends_as_well() -> None:
    stopped = writer()
    stopped.add(request_record("a"))
    await stopped.flush(timeout_s=1)
    assert stopped.pending == 1
