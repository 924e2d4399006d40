"""How a step's two versions did over time, in few enough points to be drawn: what is kept beside its verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final

from releases.judge.facts import CLASSES_PER_DOUBLING, Side, Sketch, Slice, Window

MOST_POINTS: Final = 40
_QUANTILE: Final = 0.95
_PERCENT: Final = 100.0


def course_of(window: Window, *, since: datetime, slice_s: float) -> list[dict[str, Any]]:
    """At most ``MOST_POINTS`` points as JSON, the oldest first; those in which nothing ended are left out.

    ``at`` is where the point begins. ``requests``, ``errors`` (in percent), ``ttft`` and ``total`` (p95 in ms) are of
    canary and stable version, ``agreement`` (in percent) of mirrored answers; None where nothing was measured.
    """
    if not window.slices:
        return []
    width = ceil((max(part.index for part in window.slices) + 1) / MOST_POINTS)
    grouped: dict[int, list[Slice]] = {}
    for part in window.slices:
        grouped.setdefault(part.index // width, []).append(part)
    return [
        _point(parts, at=since + timedelta(seconds=slice_s * width * number))
        for number, parts in sorted(grouped.items())
    ]


def _point(parts: Sequence[Slice], *, at: datetime) -> dict[str, Any]:
    sides = ([part.canary for part in parts], [part.stable for part in parts])
    compared = sum(part.agreement.count for part in parts)
    agreed = sum(part.agreement.sum for part in parts)
    return {
        "at": at.isoformat(),
        "requests": [sum(each.requests for each in side) for side in sides],
        "errors": [_errors(side) for side in sides],
        "ttft": [_tail(each.ttft for each in side) for side in sides],
        "total": [_tail(each.total for each in side) for side in sides],
        "agreement": round(agreed / compared * _PERCENT, 2) if compared else None,
    }


def _errors(side: Sequence[Side]) -> float | None:
    requests = sum(each.requests for each in side)
    return round(sum(each.errors for each in side) / requests * _PERCENT, 3) if requests else None


def _tail(sketches: Iterable[Sketch]) -> float | None:
    """The middle of the class in which the quantile lies."""
    counts: Counter[int] = Counter()
    for sketch in sketches:
        counts.update(sketch.counts)
    left = ceil(counts.total() * _QUANTILE)
    for index in sorted(counts):
        left -= counts[index]
        if left <= 0:
            return round(float(2 ** ((index + 0.5) / CLASSES_PER_DOUBLING)), 1)
    return None
