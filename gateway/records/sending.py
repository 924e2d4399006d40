"""Lines of records into the database: by COPY the first time, by an insert that may be repeated from then on."""

import functools
import logging
from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg import sql

from gateway.database import Connection
from gateway.records.shapes import TABLES, Table

_log = logging.getLogger(__name__)

# What the database says of the rows themselves: the same ones would be refused for ever.
REFUSED: Final = (psycopg.DataError, psycopg.IntegrityError)


async def copy_lines(connection: Connection, table: Table, lines: Sequence[bytes]) -> None:
    """Append the lines, all or none; raises psycopg.Error, one of REFUSED if a row is at fault or there already."""
    async with connection.cursor() as cursor, cursor.copy(_copy_statement(table.name, tuple(table.columns))) as copy:
        await copy.write(b"\n".join(lines) + b"\n")


async def insert_lines(connection: Connection, table: Table, columns: tuple[str, ...], lines: Sequence[bytes]) -> int:
    """Append those lines that aren't there yet; how many were refused. Raises psycopg.Error for other reasons.

    A row that the database refuses is found by halving, so that it doesn't take its neighbours with it.
    """
    try:
        await connection.execute(
            _insert_statement(table.name, columns), [f"[[{'],['.join(map(bytes.decode, lines))}]]"]
        )
    except REFUSED as error:
        if len(lines) == 1:
            _log.error("a row for %s is refused by the database and lost: %s", table.name, error)
            return 1
        half = len(lines) // 2
        refused = await insert_lines(connection, table, columns, lines[:half])
        return refused + await insert_lines(connection, table, columns, lines[half:])
    return 0


@functools.cache
def _copy_statement(table: str, columns: tuple[str, ...]) -> bytes:
    form = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, NULL 'null', QUOTE '\"', ESCAPE '\\')")
    return form.format(sql.Identifier(table), _names(columns)).as_bytes()


@functools.cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> sql.Composed:
    """Without a target, ON CONFLICT asks for no right to read."""
    types = TABLES[table].columns
    values = [
        sql.SQL("(r ->> {})::{}").format(sql.Literal(place), sql.Identifier(types[column]))
        for place, column in enumerate(columns)
    ]
    form = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM jsonb_array_elements(%s::jsonb) AS r ON CONFLICT DO NOTHING")
    return form.format(sql.Identifier(table), _names(columns), sql.SQL(", ").join(values))


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
