"""From what was measured to what is promised: differences to direct calls of the same round, medians, bounds."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.gateway.load import Tally

# What the promises are measured against: of each figure the better of the two, one engine or all.
RIVALS = ("vllm-router", "vllm-router-all")
OURS = "lorekeeper"
DIRECT = "direct"
RATE_FACTOR = 1.3
RESIDENT_MB = 150.0
CONNECTIONS = (1, 16, 64)
BUSIEST = 64


@dataclass(frozen=True, slots=True)
class Load:
    """So many connections that ask for whole answers, or for streams."""

    connections: int
    stream: bool = False

    def __str__(self) -> str:
        return f"{self.connections} {'streams' if self.stream else 'connections'}"


STREAMS = Load(BUSIEST, stream=True)


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm under one load in one round. Times in milliseconds, ``cpu_us`` in microseconds an answer."""

    rate: float
    p50: float
    p99: float
    first: float
    cpu_us: float
    errors: int = 0
    wrong: int = 0
    served: int = 0

    @classmethod
    def of(cls, tally: Tally, *, cpu_s: float) -> Cell:
        """What a tally comes to; an arm that answered nothing in time took for ever."""
        errors = sum(tally.errors.values())
        if not tally.answers:
            return cls(0.0, math.inf, math.inf, math.inf, math.inf, errors, tally.wrong, tally.served)
        took, first = sorted(tally.took), sorted(tally.first)
        return cls(
            rate=tally.answers / tally.seconds,
            p50=took[len(took) // 2] / 1e6,
            p99=took[int(len(took) * 0.99)] / 1e6,
            first=first[len(first) // 2] / 1e6,
            cpu_us=cpu_s * 1e6 / tally.served,
            errors=errors,
            wrong=tally.wrong,
            served=tally.served,
        )


@dataclass(slots=True)
class Figures:
    """All cells by arm and load, in the order of the rounds."""

    cells: defaultdict[tuple[str, Load], list[Cell]] = field(default_factory=lambda: defaultdict(list))
    resident_mb: dict[str, float] = field(default_factory=dict)
    recorded: int = 0  # requests that the database has a record of

    def median(self, arm: str, load: Load, what: str) -> float:
        """The median over the rounds."""
        return statistics.median(float(getattr(cell, what)) for cell in self.cells[arm, load])

    def added(self, arm: str, load: Load, what: str) -> float:
        """How much more than a direct call in the same round, the median over the rounds; never below 0."""
        # Some arms sit the later rounds out.
        pairs = zip(self.cells[arm, load], self.cells[DIRECT, load], strict=False)
        more = [float(getattr(cell, what)) - float(getattr(bare, what)) for cell, bare in pairs]
        return max(0.0, statistics.median(more))

    def is_sound(self, arm: str) -> bool:
        """Whether the arm was measured and only answered, streams too."""
        return bool(self.cells[arm, STREAMS]) and not any(self.bad(arm)) and self.median(arm, STREAMS, "rate") > 0

    def bad(self, arm: str) -> tuple[int, int]:
        """Errors, and answers of another version than was asked for, in all rounds."""
        return sum(cell.errors for cell in self._of(arm)), sum(cell.wrong for cell in self._of(arm))

    def served(self, arm: str) -> int:
        """Answers in all rounds, those that weren't measured too."""
        return sum(cell.served for cell in self._of(arm))

    def _of(self, arm: str) -> list[Cell]:
        return [cell for (name, _load), found in self.cells.items() if name == arm for cell in found]


@dataclass(frozen=True, slots=True)
class Check:
    """One promise: the value kept it if it isn't above the bound (or below, where ``at_least``)."""

    what: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def is_kept(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{self.what} {self.value:,.2f} ({sign} {self.bound:,.2f}){'' if self.is_kept else ' SHORT'}"


def checks(figures: Figures) -> list[Check]:
    """Every promise of ours against the rivals of the same run; raises ValueError if none of them only answered."""
    rivals = [name for name in RIVALS if figures.is_sound(name)]
    if not rivals:
        message = "the routers to compare with made errors in this run; there is nothing to compare with"
        raise ValueError(message)

    def added(what: str, load: Load, figure: str) -> Check:
        return Check(what, figures.added(OURS, load, figure), min(figures.added(name, load, figure) for name in rivals))

    busiest = Load(BUSIEST)
    rival_rate = max(figures.median(name, busiest, "rate") for name in rivals)
    rival_us = min(figures.median(name, STREAMS, "cpu_us") for name in rivals)
    errors, wrong = figures.bad(OURS)
    return [
        *(added(f"added {what} at {n}", Load(n), what) for n in CONNECTIONS for what in ("p50", "p99")),
        Check("requests/s", figures.median(OURS, busiest, "rate"), RATE_FACTOR * rival_rate, at_least=True),
        added("added first chunk", STREAMS, "first"),
        Check("CPU us a stream", figures.median(OURS, STREAMS, "cpu_us"), rival_us),
        Check("RSS MB", figures.resident_mb[OURS], RESIDENT_MB),
        Check("errors", errors, 0),
        Check("wrong versions", wrong, 0),
        Check("answers without a record", abs(figures.served(OURS) - figures.recorded), 0),
    ]
