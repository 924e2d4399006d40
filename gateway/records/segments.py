"""The form of the files in the spool.

A first line says what it is; then come batches, each with a head that says how long it is and what its checksum is.
A batch that was cut off or changed ends what can be read of a file.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

import orjson

from gateway.records.shapes import TABLES, Table

MAGIC: Final = b"lorekeeper records 1\n"
_LONGEST_HEAD: Final = 4096


class SegmentUnreadable(Exception):
    """The file is none of ours, of another version, or damaged; the message says where and how."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines for one table, in the columns that it had when they were kept."""

    table: Table
    columns: tuple[str, ...]
    lines: list[bytes]


def pack(batch: Batch) -> bytes:
    """The batch as it stands in a file."""
    body = zlib.compress(b"\n".join(batch.lines), level=1)
    head = {
        "table": batch.table.name,
        "columns": batch.columns,
        "rows": len(batch.lines),
        "bytes": len(body),
        "crc": zlib.crc32(body),
    }
    return orjson.dumps(head) + b"\n" + body


def read_batches(source: IO[bytes]) -> Iterator[Batch]:
    """The batches of an open file, from its beginning. Raises SegmentUnreadable at the first that isn't whole."""
    if source.readline(len(MAGIC)) != MAGIC:
        raise SegmentUnreadable("the file doesn't begin as request records of this version do")
    while head := _read_head(source):
        at = source.tell()
        body = source.read(head["bytes"])
        if len(body) != head["bytes"] or zlib.crc32(body) != head["crc"]:
            raise SegmentUnreadable(f"the batch at byte {at} was cut off or changed")
        yield Batch(TABLES[head["table"]], tuple(head["columns"]), zlib.decompress(body).split(b"\n"))


def count_rows(source: IO[bytes]) -> int:
    """How many rows an open file holds, as far as it can be read."""
    rows = 0
    try:
        if source.readline(len(MAGIC)) != MAGIC:
            return 0
        while head := _read_head(source):
            rows += head["rows"]
            source.seek(head["bytes"], os.SEEK_CUR)
    except SegmentUnreadable:
        return rows
    return rows


def _read_head(source: IO[bytes]) -> dict[str, Any]:
    """Empty at the end of the file."""
    at = source.tell()
    line = source.readline(_LONGEST_HEAD)
    if not line:
        return {}
    try:
        head = orjson.loads(line)
        if not _is_known(head["table"], head["columns"]) or not (head["bytes"] > 0 and head["crc"] >= 0 < head["rows"]):
            raise SegmentUnreadable(f"the batch at byte {at} has columns that this version doesn't know")
    except (ValueError, KeyError, TypeError) as error:
        raise SegmentUnreadable(f"the head of a batch at byte {at} can't be read") from error
    return dict(head)


def _is_known(table: str, columns: Sequence[str]) -> bool:
    return table in TABLES and set(columns) <= TABLES[table].columns.keys()
