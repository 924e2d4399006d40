"""What goes from a gateway to the process that sends its spans: a line of JSON for each request. No bodies."""

from typing import Any, NamedTuple

import orjson

from gateway.records.shapes import RequestRecord
from gateway.spans.context import SpanContext
from gateway.trace import Trace

_NS = 1_000_000_000


class Request(NamedTuple):
    """A request that has ended. Times in nanoseconds: `began` since 1970, the others since then.

    `sent` and `answered` are of the last call to an engine, 0 where there was none. `record` has no `at`.
    """

    context: SpanContext
    began: int
    ended: int
    sent: int
    answered: int
    route: str
    adapter: str
    record: RequestRecord


def pack(context: SpanContext, trace: Trace, record: RequestRecord, *, route: str, adapter: str) -> bytes:
    """The line, with its end."""
    sent = _ns(trace.sent_at - trace.arrived) if trace.sent_at else 0
    answered = sent + _ns(trace.last_engine_s) if sent else 0
    ended = max(record.total_ms * 1_000_000, answered)
    times = (_ns(record.at.timestamp()), ended, sent, answered)
    return orjson.dumps((tuple(context), *times, route, adapter, tuple(record)), option=orjson.OPT_APPEND_NEWLINE)


def unpack(line: bytes) -> Request:
    """What `pack` made of it."""
    context, began, ended, sent, answered, route, adapter, record = orjson.loads(line)
    known: list[Any] = record
    return Request(SpanContext(*context), began, ended, sent, answered, route, adapter, RequestRecord(*known))


def _ns(seconds: float) -> int:
    return max(0, round(seconds * _NS))
