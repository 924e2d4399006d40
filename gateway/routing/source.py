"""Keeps the snapshot in step with the database.

Three sessions, each on its own connection and each reconnecting by itself: one listens for notifications, one reads,
one reads what can't wait. The reader reads everything once for each of its connections and then what has changed, when
it's notified, when the listener or the cold path wishes so, and by the poll: a lost notification costs no more than one
interval. A revocation is told by name and holds before a read has even begun. The end of a load is told by name too:
only that version's residencies are read, whatever else there is. While the database is away the last snapshot stays in
force; a gateway that starts meanwhile serves from the copy on its disk.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from uuid import UUID

import psycopg

from gateway.database import Connection, connect, keep_alive
from gateway.routing.current import CurrentSnapshot
from gateway.routing.disk import CopyRefused, DiskCopy
from gateway.routing.reading import Reading, read_delta, read_places, read_snapshot

_log = logging.getLogger(__name__)

CHANNEL = "lorekeeper_routing"

_READ_TIMEOUT_S = 15.0
_SHORTEST_REST_S = 0.002
_LONGEST_REST_S = 0.05
# For a database that neither answers nor refuses.
_PATIENCE_S = 3.0


class SnapshotSource:
    """Reads the routing views whenever something may have changed and publishes what it found."""

    def __init__(
        self, *, database_url: str, poll_s: float, current: CurrentSnapshot, copy: DiskCopy | None = None
    ) -> None:
        """Publish to `current`; read at least every `poll_s` seconds. `copy` is served from and kept up to date."""
        self._database_url = database_url
        self._poll_s = poll_s
        self._current = current
        self._copy = copy
        self._lost = asyncio.Event()

    async def run(self) -> None:
        """Listen and read until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_alive(self._listen, purpose="listen"))
            group.create_task(keep_alive(self._follow, purpose="snapshot"))
            group.create_task(keep_alive(self._hurry, purpose="hurry"))
            if self._copy is not None:
                group.create_task(self._fall_back(self._copy))
                group.create_task(self._copy.keep(self._current))

    async def _listen(self, works: Callable[[], None]) -> None:
        async with await connect(self._database_url, purpose="listen") as connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            works()
            # Whatever was said before this moment went unheard.
            self._current.refresh()
            async for notification in connection.notifies():
                self._take_in(notification.payload)

    def _take_in(self, payload: str) -> None:
        revoked, loaded = named_version(payload, "revoked"), named_version(payload, "loaded")
        if revoked is not None:
            self._current.revoke(revoked)
        if loaded is not None:
            self._current.hurry(loaded)
        else:
            self._current.refresh()

    async def _hurry(self, works: Callable[[], None]) -> None:
        async with await connect(self._database_url, purpose="hurry") as connection:
            works()
            while True:
                await self._current.hurry_wanted.wait()
                version_ids, began = self._current.take_hurried(), time.monotonic()
                async with asyncio.timeout(_READ_TIMEOUT_S):
                    places = await read_places(connection, version_ids)
                self._current.tell(places, read_at=began)

    async def _follow(self, works: Callable[[], None]) -> None:
        try:
            async with await connect(self._database_url, purpose="snapshot") as connection:
                await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
                await connection.set_read_only(True)
                await self._read_on(connection, works)
        finally:
            self._lost.set()

    async def _read_on(self, connection: Connection, works: Callable[[], None]) -> None:
        last: Reading | None = None
        while True:
            self._current.wanted.clear()
            began = time.monotonic()
            async with asyncio.timeout(_READ_TIMEOUT_S):
                last = await self._read(connection, last)
            self._current.publish(last.snapshot, read_at=began)
            works()
            # A burst of commits costs at most half of the process's time.
            await asyncio.sleep(min(max(time.monotonic() - began, _SHORTEST_REST_S), _LONGEST_REST_S))
            await self._until_wanted()

    async def _read(self, connection: Connection, last: Reading | None) -> Reading:
        """Read what has changed since the `last` reading, or everything if that isn't known.

        A delta is of what was read, not of what is in force: what was told of single versions meanwhile may be older,
        and no later delta would mend it.
        """
        if last is not None:
            delta = await read_delta(connection, seen=last.seen)
            if delta is not None:
                return Reading(delta.applied(last.snapshot), delta.seen)
        return await read_snapshot(connection, known=self._current.peek())

    async def _until_wanted(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll_s):
                await self._current.wanted.wait()

    async def _fall_back(self, copy: DiskCopy) -> None:
        """Serve from the copy once the first try to reach the database has failed, or takes too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._lost.wait()
        if self._current.is_ready:
            return
        try:
            kept = copy.load()
        except CopyRefused as refused:
            _log.error("the copy of the routing data isn't used: %s", refused)
            return
        if kept is not None:
            self._current.start_from(kept.snapshot, age_s=kept.age_s)
            _log.warning("serving from the copy on the disk, %.0f s old", kept.age_s)


def named_version(payload: str, kind: str) -> UUID | None:
    """The version of which a notification says that; None if it says something else, or nothing that can be read."""
    said, _colon, version_id = payload.partition(":")
    if said != kind:
        return None
    try:
        return UUID(version_id)
    except ValueError:
        return None
