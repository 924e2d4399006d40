"""Records from memory to the database, or to the spool on disk while it's away.

A record is encoded when it's added, so that writing a batch is joining bytes and holds up no request. A batch is sent
by COPY once. Whether a send that broke off was kept can't be known: its rows go by inserts that leave out what is
there, and so does everything that was in the spool.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import orjson
import psycopg

from gateway.database import Connection, connect, keep_alive
from gateway.records.segments import Batch
from gateway.records.sending import REFUSED, copy_lines, insert_lines
from gateway.records.shapes import (
    MARKS,
    REQUESTS,
    SHADOWS,
    MarkRecord,
    Record,
    RequestRecord,
    ShadowRecord,
    Table,
    encode,
)
from gateway.records.spool import Spool

_log = logging.getLogger(__name__)

# What is sent at once. Not more: joining and sending it holds up requests, for less than half a millisecond.
_BATCH: Final = 2000
# Shares of the time that a record may be in memory alone: written is every half of it, or when there is a batch, and
# what wasn't after three quarters goes to the disk in the last one.
_WRITE, _LATE, _LOOK = 0.5, 0.75, 0.25
# How often the spool is looked at for what other processes have left there: that takes a thread, which holds up
# requests whenever it's its turn.
_LEFT_S: Final = 5.0


class _Queue:
    """Lines for one table: those that wait, and those on their way to the database or to the disk."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.columns = tuple(table.columns)
        self.waiting: deque[bytes] = deque()
        self.going: list[bytes] = []
        self.keeping: list[bytes] = []

    def __len__(self) -> int:
        return len(self.waiting) + len(self.going) + len(self.keeping)

    def take(self) -> list[bytes]:
        """The next lines to send; then call `ended`, or they come back."""
        self.going = [self.waiting.popleft() for _ in range(min(_BATCH, len(self.waiting)))]
        return self.going

    def ended(self) -> None:
        self.going = []

    def come_back(self) -> None:
        self.waiting.extendleft(reversed(self.going))
        self.going = []

    def take_all(self) -> list[bytes]:
        """All lines, also those that are being sent: that may never end. Take away what is kept, then call `kept`."""
        self.keeping = [*self.going, *self.waiting]
        self.going = []
        self.waiting.clear()
        return self.keeping

    def kept(self) -> None:
        """What couldn't be kept waits again."""
        self.waiting.extendleft(reversed(self.keeping))
        self.keeping = []


class RecordWriter:
    """Queues of records, the session that empties them, and the spool behind them."""

    def __init__(self, *, database_url: str, bound: int, flush_s: float, spool: Spool | None = None) -> None:
        """Hold at most `bound` records of a kind in memory, none of them there alone for longer than `flush_s`.

        Without a spool they stay in memory while the database is away.
        """
        self._database_url = database_url
        self._bound = bound
        self._flush_s = flush_s
        self._spool = spool
        self._requests, self._shadows, self._marks = _Queue(REQUESTS), _Queue(SHADOWS), _Queue(MARKS)
        self._queues = (self._requests, self._shadows, self._marks)
        self._dropped = 0
        self._is_due = asyncio.Event()
        # All that was added before then is written.
        self._written_until = time.monotonic()
        self._is_disk_failing = False
        self._looks_at = 0.0

    @property
    def pending(self) -> int:
        """Records in memory that aren't written yet."""
        return sum(map(len, self._queues))

    @property
    def dropped(self) -> int:
        """Records that are lost: over a bound, or refused by the database."""
        return self._dropped + (0 if self._spool is None else self._spool.dropped)

    @property
    def spooled_bytes(self) -> int:
        """What lies on the disk, of all processes that share the folder."""
        return 0 if self._spool is None else self._spool.bytes

    def add(self, record: RequestRecord) -> None:
        """Queue a record; at the bound it's counted as dropped instead."""
        self._add(self._requests, record)

    def add_shadow(self, record: ShadowRecord) -> None:
        """Queue the comparison of a shadow answer likewise."""
        self._add(self._shadows, record)

    def add_mark(self, record: MarkRecord) -> bool:
        """Queue a mark likewise; whether it was, since somebody waits to hear it."""
        return self._add(self._marks, record)

    async def run(self) -> None:
        """Write and keep until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_alive(self._session, purpose="records"))
            if self._spool is not None:
                group.create_task(self._keep_what_waits(self._spool))

    async def flush(self, *, timeout_s: float) -> None:
        """Write what is left on a connection of its own, for a shutdown; what can't be written in time is kept.

        Without a spool it's lost, which the log says.
        """
        try:
            if self.pending:
                async with asyncio.timeout(timeout_s), await connect(self._database_url, purpose="records") as opened:
                    await self._write_waiting(opened)
        except (psycopg.Error, OSError) as error:
            await self._keep_the_rest(error)
        finally:
            if self._spool is not None:
                self._spool.close()

    def _add(self, queue: _Queue, record: Record) -> bool:
        if len(queue.waiting) >= self._bound:
            self._dropped += 1
            return False
        try:
            queue.waiting.append(encode(record))
        except orjson.JSONEncodeError:
            self._dropped += 1
            _log.exception("a record can't be written down")
            return False
        if len(queue.waiting) >= _BATCH:
            self._is_due.set()
        return True

    async def _session(self, works: Callable[[], None]) -> None:
        async with await connect(self._database_url, purpose="records") as connection:
            while True:
                await self._write_waiting(connection)
                works()
                if not await self._send_kept(connection):
                    await self._until_due()

    async def _until_due(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._flush_s * _WRITE):
                await self._is_due.wait()

    async def _write_waiting(self, connection: Connection) -> None:
        """Write what waits now. What comes meanwhile is for the next time: one by one it would never end."""
        self._is_due.clear()
        began = time.monotonic()
        for queue in self._queues:
            for _ in range(0, len(queue.waiting), _BATCH):
                await self._write(connection, queue)
        self._written_until = began

    async def _write(self, connection: Connection, queue: _Queue) -> None:
        lines = queue.take()
        if not lines:  # they are on the disk by now
            return
        try:
            try:
                await copy_lines(connection, queue.table, lines)
            except REFUSED:
                self._dropped += await insert_lines(connection, queue.table, queue.columns, lines)
            queue.ended()
        finally:
            queue.come_back()

    async def _send_kept(self, connection: Connection) -> bool:
        """Send one batch of the spool, if there may be one and there is."""
        if self._spool is None or time.monotonic() < self._looks_at:
            return False
        # Before the look: what is kept from now on asks for another one.
        self._looks_at = time.monotonic() + _LEFT_S
        try:
            batch = await asyncio.to_thread(self._spool.next)
        except OSError as error:
            self._note_disk(error)
            return False
        if batch is None:
            return False
        self._looks_at = 0.0
        self._dropped += await insert_lines(connection, batch.table, batch.columns, batch.lines)
        await asyncio.to_thread(self._spool.sent)
        return True

    async def _keep_what_waits(self, spool: Spool) -> None:
        while True:
            await asyncio.sleep(self._flush_s * _LOOK)
            if time.monotonic() - self._written_until > self._flush_s * _LATE:
                await self._keep_all(spool)

    async def _keep_all(self, spool: Spool) -> None:
        """Put on the disk what is in memory; what can't be put there stays."""
        try:
            for queue in self._queues:
                await _keep(spool, queue)
        except OSError as error:
            self._note_disk(error)
        else:
            self._note_disk(None)
        self._looks_at = 0.0

    async def _keep_the_rest(self, error: Exception) -> None:
        if self._spool is not None:
            await self._keep_all(self._spool)
        if self.pending:
            _log.warning("%d request records are lost: %s", self.pending, type(error).__name__)

    def _note_disk(self, error: OSError | None) -> None:
        """Say once that the disk fails, and once that it works again."""
        if error is not None and not self._is_disk_failing:
            _log.error("request records can't be kept on disk, they stay in memory: %s", error)
        if error is None and self._is_disk_failing:
            _log.info("request records are kept on disk again")
        self._is_disk_failing = error is not None


async def _keep(spool: Spool, queue: _Queue) -> None:
    lines = queue.take_all()
    try:
        while lines:
            await asyncio.to_thread(spool.keep, Batch(queue.table, queue.columns, lines[:_BATCH]))
            del lines[:_BATCH]
    finally:
        # Also when cancelled: a batch that is both on disk and sent is one record in the database.
        queue.kept()
