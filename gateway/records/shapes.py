"""What is kept of a request, a comparison with a shadow and a mark: tuples on the path, then one line of text each.

A line is the CSV that COPY reads and, in brackets, a JSON array: JSON's numbers, ``true`` and quoted strings are valid
CSV as they are, ``null`` unquoted is NULL. So one encoder in C serves COPY, the spool on disk, and what is sent again
from there. Its strings hold no line end. Bodies are never in them.
"""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import orjson


class RequestRecord(NamedTuple):
    """One answered (or failed) request; times in whole milliseconds, an empty string where there is nothing to say.

    ``tier`` is where the version was at arrival; ``path`` is chat, completions, embeddings or responses; ``side`` is
    stable or canary, where the alias is split; ``fallback`` is stable or base, if that answered instead; ``engine_ms``
    runs from sending to the last byte. A mirrored request (``is_shadow``) has the id of the one that it mirrors.
    """

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
    path: str = ""
    side: str = ""
    is_shadow: bool = False
    fallback: str = ""
    retries: int = 0
    engine_ms: int = 0


class ShadowRecord(NamedTuple):
    """How a candidate's answer compared to the one that the client got, for the request with that id and time.

    ``agreement`` is the share of the answers that begins the same, 0 to 1; None where the candidate failed, which
    ``error_kind`` then names. Times in whole milliseconds, from sending to the last byte.
    """

    at: datetime
    request_id: str
    tenant: str
    alias: str
    stable_version_id: UUID
    candidate_version_id: UUID
    agreement: float | None
    stable_tokens: int | None
    candidate_tokens: int | None
    stable_ms: int
    candidate_ms: int
    error_kind: str


class MarkRecord(NamedTuple):
    """What an application thinks of the answer to the request with that id: from 0, bad, to 1, good.

    ``name`` is what was marked. Of several marks with the same tenant, id and name the last one counts.
    """

    at: datetime
    tenant: str
    request_id: str
    name: str
    mark: float


Record = RequestRecord | ShadowRecord | MarkRecord


class Table(NamedTuple):
    """Where records of one shape go: the table's name, and its columns with their types, in the record's order."""

    name: str
    columns: dict[str, str]


_NUMBERS: Final = {"retries", "status", "stable_tokens", "candidate_tokens", "prompt_tokens", "completion_tokens"}
_TYPES: Final = {"at": "timestamptz", "stream": "bool", "is_shadow": "bool", "agreement": "float8", "mark": "float8"}


def _type_of(column: str) -> str:
    if column in _NUMBERS or column.endswith("_ms"):
        return "int4"
    if column.endswith("version_id"):
        return "uuid"
    return _TYPES.get(column, "text")


REQUESTS: Final = Table("gateway_request", {name: _type_of(name) for name in RequestRecord._fields})
SHADOWS: Final = Table("gateway_shadow", {name: _type_of(name) for name in ShadowRecord._fields})
MARKS: Final = Table("gateway_feedback", {name: _type_of(name) for name in MarkRecord._fields})
TABLES: Final = {table.name: table for table in (REQUESTS, SHADOWS, MARKS)}


def encode(record: Record) -> bytes:
    """The record's line, without its end. Raises ``orjson.JSONEncodeError`` if a text isn't valid Unicode."""
    return orjson.dumps(tuple(record))[1:-1]
