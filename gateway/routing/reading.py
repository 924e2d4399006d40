"""Reads of the routing views over one connection: of everything, of what has changed since, of single versions.

What has changed is found by the database's own snapshots. Each read ends with the text of the one that it saw
(`pg_current_snapshot`); the next asks for the notes in `routing_change` whose transactions that one didn't see and its
own does. Neither a transaction that commits late nor one that rolls back makes a gap, and nothing is waited for.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from gateway.database import Connection
from gateway.routing.changes import Changed, changed_snapshot
from gateway.routing.snapshot import Draft, Residency, RoutingRows, RoutingSnapshot, Row, by_version

_SELECTS = {
    "aliases": "SELECT tenant, alias, version_id, revision, candidate_id, basis_points, salt, allow, deny, shadow_id,"
    " shadow_basis_points, owner FROM routing_aliases",
    "versions": "SELECT version_id, tenant, adapter, version, engine_name, base_digest, rank, state"
    " FROM routing_versions",
    "nodes": "SELECT node, engine_kind, engine_url, base_digest, base_model, max_rank, gpu_slots, status"
    " FROM routing_nodes",
    "residencies": "SELECT node, version_id, engine_name, observed, generation, tier FROM routing_residencies",
    "tokens": "SELECT prefix, digest, tenant, expires_at FROM routing_tokens",
    "rules": "SELECT tenant, requests_per_minute, tokens_per_minute, concurrent_requests, gpu_ms_per_minute,"
    " base_models, allows_shadow FROM routing_rules",
    "cold_rules": "SELECT base_model, tenant, on_cold, wait_s, token_ms FROM routing_cold_rules",
}
_WHERE = {
    "aliases": "(tenant, alias) IN (SELECT * FROM unnest(%s::text[], %s::text[]))",
    "versions": "version_id = ANY(%s)",
    "nodes": "node = ANY(%s)",
    "residencies": "version_id = ANY(%s) OR node = ANY(%s)",
    "tokens": "digest = ANY(%s)",
    "rules": "tenant = ANY(%s)",
    "cold_rules": "%s",
}
_NOW = "SELECT pg_current_snapshot()::text"
# One row at least: the moment, whether it's known what has changed, and the notes.
_NOTES = """
    SELECT DISTINCT pg_current_snapshot()::text, f.forgotten < pg_snapshot_xmin(%(seen)s::pg_snapshot), c.kind, c.key
    FROM routing_feed f
    LEFT JOIN routing_change c
        ON c.xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot)
        AND NOT pg_visible_in_snapshot(c.xid, %(seen)s::pg_snapshot)
    LIMIT %(most)s
"""
# More than these cost no less than a read of everything.
_MOST_NOTES = 5000
_SLICE = 500


@dataclass(frozen=True, slots=True)
class Reading:
    """A snapshot, and the moment of the database that it shows."""

    snapshot: RoutingSnapshot
    seen: str


async def read_snapshot(connection: Connection, *, known: RoutingSnapshot | None = None) -> Reading:
    """Read all views as of one moment, in slices between which the event loop serves others.

    What is as it was in `known` is shared with it. The connection must be in isolation level REPEATABLE READ.
    """
    draft = Draft(known)
    async with connection.transaction():
        ((seen,),) = await _fetch(connection, _NOW)
        for view, select in _SELECTS.items():
            async for rows in _slices(connection, select):
                draft.take(RoutingRows(**{view: rows}))
    return Reading(draft.snapshot(), str(seen))


@dataclass(frozen=True, slots=True)
class Delta:
    """What has changed between two moments, with all rows there are under the changed keys at the second."""

    changed: Changed
    rows: RoutingRows
    seen: str

    def applied(self, snapshot: RoutingSnapshot) -> RoutingSnapshot:
        """The snapshot with the changes in it."""
        return changed_snapshot(snapshot, self.changed, self.rows)


async def read_delta(connection: Connection, *, seen: str) -> Delta | None:
    """Read what has changed since the moment `seen`; None when that isn't known any more, unclear, or too much."""
    async with connection.transaction():
        notes = await _fetch(connection, _NOTES, {"seen": seen, "most": _MOST_NOTES + 1})
        if len(notes) > _MOST_NOTES or not all(is_known for _, is_known, _, _ in notes):
            return None
        try:
            changed = Changed.read((kind, key) for _, _, kind, key in notes if kind is not None)
        except ValueError:
            # A note by another release, say: one that can't be read must not stop this gateway.
            return None
        return Delta(changed, await _read_rows(connection, changed), str(notes[0][0]))


async def read_places(connection: Connection, version_ids: Iterable[UUID]) -> dict[UUID, tuple[Residency, ...]]:
    """Where these versions are now; those that are nowhere, too."""
    wanted = list(version_ids)
    found = by_version(await _fetch(connection, f"{_SELECTS['residencies']} WHERE version_id = ANY(%s)", [wanted]))
    return {version_id: found.get(version_id, ()) for version_id in wanted}


async def _read_rows(connection: Connection, changed: Changed) -> RoutingRows:
    rows = {
        view: await _fetch(connection, f"{_SELECTS[view]} WHERE {_WHERE[view]}", parameters)
        for view, parameters in _parameters(changed).items()
        if any(parameters)
    }
    return RoutingRows(**rows)


def _parameters(changed: Changed) -> dict[str, list[Any]]:
    """Those of each view's condition; all of them empty where nothing has changed."""
    aliases = list(changed.aliases)
    return {
        "aliases": [[tenant for tenant, _ in aliases], [name for _, name in aliases]],
        "versions": [list(changed.versions)],
        "nodes": [list(changed.nodes)],
        "residencies": [list(changed.residencies), list(changed.nodes)],
        "tokens": [list(changed.tokens)],
        "rules": [list(changed.rules)],
        "cold_rules": [changed.cold_rules],
    }


async def _slices(connection: Connection, query: str) -> AsyncIterator[list[Row]]:
    # A cursor of the server's: else all rows would be taken from the connection at once.
    async with connection.cursor(name="slices") as cursor:
        await cursor.execute(query.encode())
        while rows := await cursor.fetchmany(_SLICE):
            yield rows
            await asyncio.sleep(0)


async def _fetch(connection: Connection, query: str, parameters: Any = None) -> list[Row]:  # noqa: ANN401  psycopg's
    cursor = await connection.execute(query.encode(), parameters)
    return await cursor.fetchall()
