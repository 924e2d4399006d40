"""What a verdict is made of: one window of time, in slices, with the same facts of both sides."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Classes per doubling: those of scale 4 of OpenTelemetry's exponential histograms, at most 2.2 % off the value.
CLASSES_PER_DOUBLING = 16
# From a billionth to a billion: any milliseconds, tokens or money; what lies outside counts as the nearest.
CLASS_MIN, CLASS_MAX = -30 * CLASSES_PER_DOUBLING, 30 * CLASSES_PER_DOUBLING


def class_of(value: float) -> int:
    """The class of a value: i where ``2^(i/16) < value <= 2^((i+1)/16)``.

    In SQL: ``ceil(16 * ln(value) / ln(2)) - 1``.
    """
    if value <= 0:
        return CLASS_MIN
    index = math.ceil(math.log2(value) * CLASSES_PER_DOUBLING) - 1
    return min(max(index, CLASS_MIN), CLASS_MAX)


@dataclass(frozen=True, slots=True)
class Sketch:
    """How many values fell into each class (``class_of``): of any number of samples, mergeable, the same every time."""

    counts: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(count < 0 or not CLASS_MIN <= index <= CLASS_MAX for index, count in self.counts.items()):
            raise ValueError(f"Counts are 0 or more, and classes from {CLASS_MIN} to {CLASS_MAX}.")

    @classmethod
    def of(cls, values: Iterable[float]) -> Sketch:
        """Values in the measure's unit (ms, money); not a number and infinite ones are refused."""
        listed = list(values)
        if not all(map(math.isfinite, listed)):
            raise ValueError("Values are finite.")
        return cls(Counter(map(class_of, listed)))

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks between 0 (bad) and 1 (good): how many, and their sum."""

    count: int = 0
    sum: float = 0.0

    def __post_init__(self) -> None:
        if not (self.count >= 0 and 0 <= self.sum <= self.count):
            raise ValueError("Marks lie between 0 and 1, so their sum does between 0 and their count.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one version did in one slice.

    ``errors`` are those of the ``requests`` that the serving side is to blame for; refusals for a client's mistakes
    and cancelled requests are neither. ``ttft`` and ``total`` are in ms, of requests that were answered; ``cost`` is
    per answer, in whatever unit the caller reports.
    """

    requests: int = 0
    errors: int = 0
    ttft: Sketch = field(default_factory=Sketch)
    total: Sketch = field(default_factory=Sketch)
    cost: Sketch = field(default_factory=Sketch)
    quality: Marks = field(default_factory=Marks)

    def __post_init__(self) -> None:
        if not 0 <= self.errors <= self.requests:
            raise ValueError("Errors are some of the requests.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of the window, of equal length to the others (5 to 60 s): requests that came together.

    What happens within a slice may be one event, such as a client that retries: how much more the slices differ than
    single requests would make them is reckoned with. ``agreement`` is of shadowed requests: 1 is the same answer.
    ``index`` says which slice of the window it is, from its beginning; only who draws them asks.
    """

    index: int = 0
    canary: Side = field(default_factory=Side)
    stable: Side = field(default_factory=Side)
    agreement: Marks = field(default_factory=Marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One step of a release from its beginning until now: both sides, of the same requests' time and node pool.

    The share of the canary doesn't change inside; a step with another share is another window. ``cost_unit`` is for
    people.
    """

    slices: tuple[Slice, ...] = ()
    cost_unit: str = "engine ms"
