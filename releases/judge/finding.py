"""What came of one metric, in numbers; ``sentences`` makes words of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from releases.judge.evidence import log_bar
from releases.judge.verdict import Outcome

if TYPE_CHECKING:
    from releases.judge.settings import JudgeSettings
    from releases.judge.verdict import Interval


class Reason(Enum):
    NO_DATA = auto()
    TOO_FEW = auto()
    TOO_FEW_SLICES = auto()
    HARM = auto()
    OVER_CEILING = auto()
    BOTH_OVER_CEILING = auto()
    MAYBE_OVER_CEILING = auto()
    NO_HARM = auto()
    OPEN = auto()

    @property
    def outcome(self) -> Outcome:
        if self in {Reason.HARM, Reason.OVER_CEILING}:
            return Outcome.FAIL
        return Outcome.PASS if self is Reason.NO_HARM else Outcome.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Bars:
    """What the logarithm of an e-value has to reach for a fail, and for a pass.

    Over metrics only fails are corrected: a pass needs all of them, so that its chance of error is at most that of one
    (the intersection-union test, Berger 1982).
    """

    fail: float
    passing: float

    @classmethod
    def of(cls, settings: JudgeSettings) -> Bars:
        return cls(fail=log_bar(settings.false_alarm_per_test), passing=log_bar(settings.false_pass))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``matters`` and ``margin`` are differences; those and ``canary``, ``stable`` and ``interval`` are in one unit.

    ``dispersion``: what all counts were divided by. ``looks_worse``: by what matters, certain or not.
    """

    reason: Reason
    canary_count: int
    stable_count: int
    canary: float | None = None
    stable: float | None = None
    interval: Interval | None = None
    matters: float | None = None
    margin: float | None = None
    dispersion: float = 1.0
    looks_worse: bool = False

    def holds(self, *, is_needed: bool) -> bool:
        """Whether no pass of the whole is possible with this."""
        if self.reason.outcome is not Outcome.INCONCLUSIVE:
            return False
        has_data = self.reason not in {Reason.NO_DATA, Reason.TOO_FEW, Reason.TOO_FEW_SLICES}
        is_over = self.reason in {Reason.BOTH_OVER_CEILING, Reason.MAYBE_OVER_CEILING}
        return is_needed or is_over or (has_data and self.looks_worse)


def shortage(counts: tuple[int, int], slices: int, *, minimum: int, minimum_slices: int) -> Reason | None:
    """Why nothing can be said, or None. ``counts`` are those of both sides, ``slices`` those that have both."""
    if not all(counts):
        return Reason.NO_DATA
    if min(counts) < minimum:
        return Reason.TOO_FEW
    return Reason.TOO_FEW_SLICES if slices < minimum_slices else None
