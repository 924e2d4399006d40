"""What all policies share: a score is the sum of its factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.scoring.columns import Columns, columns_of
from cachecontrol.scoring.ports import Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cachecontrol.scoring.facts import Facts, Limit
    from cachecontrol.scoring.ports import Floats


class Summed:
    """A policy that says its factors; the clock of a node stands still unless it says otherwise."""

    name: str

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:
        raise NotImplementedError

    def score(self, facts: Sequence[Facts], *, now: datetime, limit: Limit) -> list[Score]:
        terms = self.terms(columns_of(facts, now=now), limit=limit)
        by_version = zip(*(values.tolist() for values in terms.values()), strict=True)
        return [Score(value=sum(values), factors=dict(zip(terms, values, strict=True))) for values in by_version]

    def clock_after(self, clock: float, evicted: Iterable[float]) -> float:  # noqa: ARG002  # for policies that age
        return clock


def total(terms: dict[str, Floats]) -> Floats:
    """The scores that factors sum up to."""
    summed: Floats = np.sum(list(terms.values()), axis=0, dtype=np.float64)
    return summed
