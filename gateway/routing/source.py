"""Keeps the snapshot in step with the database.

Two sessions, each on its own connection and each reconnecting by itself: one listens for notifications, one reads.
A notification, a reconnect of the listener, a wish from the cold path or the poll interval each cause a full read, so
that a lost notification costs no more than one interval. A revocation is told by name and holds before that read has
even begun. While the database is away the last snapshot stays in force.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from uuid import UUID

import psycopg

from gateway.database import Connection, connect, keep_alive
from gateway.routing.current import CurrentSnapshot
from gateway.routing.snapshot import RoutingRows, RoutingSnapshot, Row

CHANNEL = "lorekeeper_routing"

_QUERIES = (
    "SELECT tenant, alias, version_id, revision FROM routing_aliases",
    "SELECT version_id, tenant, adapter, version, engine_name, base_digest, rank, state FROM routing_versions",
    "SELECT node, engine_kind, engine_url, base_digest, base_model, max_rank, gpu_slots, status FROM routing_nodes",
    "SELECT node, version_id, engine_name, observed, generation FROM routing_residencies",
    "SELECT prefix, digest, tenant, expires_at FROM routing_tokens",
)
_READ_TIMEOUT_S = 15.0
_SHORTEST_REST_S = 0.01
_LONGEST_REST_S = 0.05


class SnapshotSource:
    """Reads the routing views whenever something may have changed and publishes what it found."""

    def __init__(self, *, database_url: str, poll_s: float, current: CurrentSnapshot) -> None:
        """Publish to `current`; read at least every `poll_s` seconds."""
        self._database_url = database_url
        self._poll_s = poll_s
        self._current = current

    async def run(self) -> None:
        """Listen and read until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_alive(self._listen, purpose="listen"))
            group.create_task(keep_alive(self._follow, purpose="snapshot"))

    async def _listen(self, works: Callable[[], None]) -> None:
        async with await connect(self._database_url, purpose="listen") as connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            works()
            # Whatever was said before this moment went unheard.
            self._current.refresh()
            async for notification in connection.notifies():
                revoked = revoked_version(notification.payload)
                if revoked is not None:
                    self._current.revoke(revoked)
                self._current.refresh()

    async def _follow(self, works: Callable[[], None]) -> None:
        async with await connect(self._database_url, purpose="snapshot") as connection:
            await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await connection.set_read_only(True)
            while True:
                self._current.wanted.clear()
                began = time.monotonic()
                async with asyncio.timeout(_READ_TIMEOUT_S):
                    self._current.publish(RoutingSnapshot.build(await read_rows(connection)))
                works()
                # A burst of commits costs at most half of the process's time.
                await asyncio.sleep(min(max(time.monotonic() - began, _SHORTEST_REST_S), _LONGEST_REST_S))
                await self._until_wanted()

    async def _until_wanted(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll_s):
                await self._current.wanted.wait()


def revoked_version(payload: str) -> UUID | None:
    """The version that a notification says is revoked; None if it says something else, or nothing that can be read."""
    kind, _colon, version_id = payload.partition(":")
    if kind != "revoked":
        return None
    try:
        return UUID(version_id)
    except ValueError:
        return None


async def read_rows(connection: Connection) -> RoutingRows:
    """Read all views in one transaction, so that they fit together."""
    found: list[list[Row]] = []
    async with connection.transaction():
        for query in _QUERIES:
            cursor = await connection.execute(query)
            found.append(await cursor.fetchall())
    aliases, versions, nodes, residencies, tokens = found
    return RoutingRows(aliases=aliases, versions=versions, nodes=nodes, residencies=residencies, tokens=tokens)
