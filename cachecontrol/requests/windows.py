"""What gateways recorded of a release's two versions, in slices: the facts that its judge decides on.

A request lies in the slice in which it ended, so that a slice that is complete stays as it is: records are written when
requests end, whenever those began. What began before the window is in no slice, since another split was in force then.
Which requests are compared, and by which times, stands in ``cachecontrol/sql/windows.sql``.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from releases.judge.facts import Marks, Side, Sketch, Slice, Window
from releases.ports import Traffic

# Every request of the window is counted anew: for longer than this no look may keep the database at it.
_LIMIT_MS: Final = 15_000

# A group for each slice and side, and one for each class of each measure in it; ``grouping`` tells which.
_REQUESTS: Final = """
WITH classed AS (
    SELECT gateway_slice_of(c.ended, %(since)s, %(slice_s)s) AS slice, c.is_canary, c.is_answered, c.is_failed,
           gateway_class_of_ms(c.ttft_ms) AS ttft, gateway_class_of_ms(c.total_ms) AS total,
           gateway_class_of_ms(c.engine_ms) AS cost
    FROM gateway_compared(%(alias_id)s, %(stable_id)s, %(candidate_id)s, %(since)s, %(until)s) c
)
SELECT slice, is_canary, grouping(ttft, total, cost), coalesce(ttft, total, cost),
       count(*), count(*) FILTER (WHERE is_answered OR is_failed), count(*) FILTER (WHERE is_failed)
FROM classed
GROUP BY slice, is_canary, GROUPING SETS ((), (ttft), (total), (cost))
"""
_WHOLE: Final = 0b111
_MEASURES: Final = {0b011: "ttft", 0b101: "total", 0b110: "cost"}

# A mark lies in the slice in which it was given, by a clock that may be behind; most come long after their request.
_MARKS: Final = """
SELECT greatest(gateway_slice_of(m.at, %(since)s, %(slice_s)s), 0), c.is_canary, count(*), sum(m.mark)
FROM gateway_compared(%(alias_id)s, %(stable_id)s, %(candidate_id)s, %(since)s, %(until)s) c
JOIN gateway_marks(%(since)s) m USING (tenant, request_id)
WHERE m.at < %(until)s
GROUP BY 1, 2
"""

_SHADOWS: Final = """
WITH classed AS (
    SELECT gateway_slice_of(m.ended, %(since)s, %(slice_s)s) AS slice, m.is_failed, m.agreement,
           gateway_class_of_ms(m.candidate_ms) AS candidate, gateway_class_of_ms(m.stable_ms) AS stable
    FROM gateway_mirrored(%(alias_id)s, %(stable_id)s, %(candidate_id)s, %(since)s, %(until)s) m
)
SELECT slice, grouping(candidate, stable), coalesce(candidate, stable),
       count(*), count(*) FILTER (WHERE is_failed), count(agreement), coalesce(sum(agreement), 0)
FROM classed
GROUP BY slice, GROUPING SETS ((), (candidate), (stable))
"""
_PAIRS: Final = 0b11
_CANDIDATES: Final = 0b01


@dataclass(slots=True)
class _Counted:
    """One side of one slice while it is put together."""

    requests: int = 0
    errors: int = 0
    sketches: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    quality: Marks = field(default_factory=Marks)

    def side(self) -> Side:
        sketches = {name: Sketch(counts) for name, counts in self.sketches.items()}
        return Side(requests=self.requests, errors=self.errors, quality=self.quality, **sketches)


_Counts = defaultdict[tuple[int, bool], _Counted]


def count_window(traffic: Traffic) -> Window | None:
    """What was recorded of the traffic, by slices; those in which nothing ended are left out. None: too much to count.

    Costs are in milliseconds of an engine. Of a shadow's stable side, errors are those of all its own requests, since
    only those are mirrored that it answered, and times those of the answers that were mirrored.
    """
    inputs = {
        "alias_id": traffic.alias_id,
        "stable_id": traffic.stable_id,
        "candidate_id": traffic.candidate_id,
        "since": traffic.since,
        "until": traffic.until,
        "slice_s": traffic.slice_s,
    }
    try:
        with transaction.atomic():
            return _shadow(inputs) if traffic.is_shadow else _canary(inputs)
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        return None


def _canary(inputs: dict[str, Any]) -> Window:
    counts = _requests(inputs)
    for number, is_canary, marks, total in _rows(_MARKS, inputs):
        counts[number, is_canary].quality = Marks(marks, min(float(total), marks))
    return _window(counts, {})


def _shadow(inputs: dict[str, Any]) -> Window:
    counts: _Counts = defaultdict(_Counted)
    for key, counted in _requests(inputs).items():
        if not key[1]:
            counts[key].requests, counts[key].errors = counted.requests, counted.errors
    agreement: dict[int, Marks] = {}
    for number, of, index, rows, failed, compared, agreed in _rows(_SHADOWS, inputs):
        canary, stable = counts[number, True], counts[number, False]
        if of == _PAIRS:
            canary.requests, canary.errors = rows, failed
            agreement[number] = Marks(compared, min(agreed, compared))
        elif index is not None:
            (canary if of == _CANDIDATES else stable).sketches["total"][index] = rows
    return _window(counts, agreement)


def _requests(inputs: dict[str, Any]) -> _Counts:
    counts: _Counts = defaultdict(_Counted)
    for number, is_canary, of, index, rows, requests, failed in _rows(_REQUESTS, inputs):
        counted = counts[number, is_canary]
        if of == _WHOLE:
            counted.requests, counted.errors = requests, failed
        elif index is not None:
            counted.sketches[_MEASURES[of]][index] = rows
    return counts


def _window(counts: _Counts, agreement: dict[int, Marks]) -> Window:
    numbers = sorted({number for number, _is_canary in counts})
    return Window(
        slices=tuple(
            Slice(
                index=number,
                canary=counts[number, True].side(),
                stable=counts[number, False].side(),
                agreement=agreement.get(number, Marks()),
            )
            for number in numbers
        )
    )


def _rows(statement: str, inputs: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {_LIMIT_MS}")
        cursor.execute(statement, inputs)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
