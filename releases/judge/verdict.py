"""What the judge says, as a whole and of each metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105  a word, no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Metric(StrEnum):
    ERRORS = "errors"
    TTFT = "ttft"
    TOTAL = "total"
    AGREEMENT = "agreement"
    QUALITY = "quality"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class Interval:
    """What the data leave open. ``low`` is where a fail's certainty begins, ``high`` where a pass's does.

    At every look there ever is: below ``low`` with at most the chance of a false alarm of this test, above ``high``
    with at most ``false_pass``. None: no bound yet.
    """

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricVerdict:
    """``canary``, ``stable``, ``difference`` and ``interval`` are in ``unit``; None where there is nothing to say.

    Differences are canary less stable; shares have the unit ``%`` and their differences are in percentage points.
    ``tested`` says what was asked and how surely, ``sentence`` what came of it and why. ``holds``: the whole can't pass
    before this has changed.
    """

    metric: Metric
    outcome: Outcome
    sentence: str
    tested: str
    unit: str
    holds: bool
    canary: float | None = None
    stable: float | None = None
    difference: float | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    sentence: str
    metrics: tuple[MetricVerdict, ...]

    def of(self, metric: Metric) -> MetricVerdict | None:
        return next((found for found in self.metrics if found.metric is metric), None)
