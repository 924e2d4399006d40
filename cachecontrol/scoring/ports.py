"""The one interface of scoring policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from cachecontrol.scoring.columns import Columns
    from cachecontrol.scoring.facts import Facts, Limit

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How much a version is worth keeping, and the factors that sum up to it."""

    value: float
    factors: dict[str, float] = field(default_factory=dict)


class ScoringPolicy(Protocol):
    """A pure function from facts to scores; the smallest is evicted first."""

    @property
    def name(self) -> str: ...

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:
        """The factors of many versions at once, by name; all are finite, and what they sum up to is the score."""
        ...

    def score(self, facts: Sequence[Facts], *, now: datetime, limit: Limit) -> list[Score]:
        """The scores of facts, in their order."""
        ...

    def clock_after(self, clock: float, evicted: Iterable[float]) -> float:
        """What a node's score clock shows once versions of these scores were evicted."""
        ...
