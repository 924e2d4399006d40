"""Request records: queued in memory, written in batches, kept while the database is away. Bodies are never in them."""

import asyncio
import dataclasses
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

import psycopg

from gateway.database import Connection, connect, keep_alive

_log = logging.getLogger(__name__)

_BATCH = 5000


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One answered (or failed) request; times in whole milliseconds, an empty string where there is nothing to say."""

    at: datetime
    request_id: str
    tenant: str
    alias: str
    version_id: UUID | None
    node: str | None
    tier: str
    status: int
    error_kind: str
    queue_ms: int
    load_ms: int
    ttft_ms: int
    total_ms: int
    prompt_tokens: int | None
    completion_tokens: int | None
    stream: bool


_COLUMNS = tuple(field.name for field in dataclasses.fields(RequestRecord))
_COPY = f"COPY gateway_request ({', '.join(_COLUMNS)}) FROM STDIN"


class RecordWriter:
    """A bounded queue of records and the session that empties it."""

    def __init__(self, *, database_url: str, bound: int, flush_s: float) -> None:
        """Hold at most `bound` records; write every `flush_s` seconds."""
        self._database_url = database_url
        self._bound = bound
        self._flush_s = flush_s
        self._queue: deque[RequestRecord] = deque()
        self.dropped = 0

    @property
    def pending(self) -> int:
        """Records that aren't written yet."""
        return len(self._queue)

    def add(self, record: RequestRecord) -> None:
        """Queue a record; at the bound it's counted as dropped instead."""
        if len(self._queue) >= self._bound:
            self.dropped += 1
            return
        self._queue.append(record)

    async def run(self) -> None:
        """Write batches until cancelled."""
        await keep_alive(self._session, purpose="records")

    async def flush(self, *, timeout_s: float) -> None:
        """Write what is left on a connection of its own, for a shutdown; gives up quietly but says so in the log."""
        if not self._queue:
            return
        try:
            async with asyncio.timeout(timeout_s):
                async with await connect(self._database_url, purpose="records") as connection:
                    await self._write_all(connection)
        except (psycopg.Error, OSError) as error:
            _log.warning("%d request records are lost: %s", len(self._queue), type(error).__name__)

    async def _session(self, works: Callable[[], None]) -> None:
        async with await connect(self._database_url, purpose="records") as connection:
            while True:
                await self._write_all(connection)
                works()
                await asyncio.sleep(self._flush_s)

    async def _write_all(self, connection: Connection) -> None:
        while self._queue:
            batch = list(islice(self._queue, _BATCH))
            try:
                await _copy(connection, batch)
            except (psycopg.DataError, psycopg.IntegrityError):
                # The same rows would be refused for ever and hold up all others.
                _log.exception("%d request records were refused by the database", len(batch))
                self.dropped += len(batch)
            for _ in batch:
                self._queue.popleft()


async def _copy(connection: Connection, batch: list[RequestRecord]) -> None:
    async with connection.cursor() as cursor, cursor.copy(_COPY.encode()) as copy:
        for record in batch:
            await copy.write_row(tuple(getattr(record, name) for name in _COLUMNS))
