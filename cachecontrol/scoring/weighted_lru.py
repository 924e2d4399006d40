"""A linear score of idle time, memory, recent hits, priority and reload cost, each normalised to 0..1.

Idle time counts in half-lives, ``1 - 2^(-idle / half-life)``: after a few of them it makes no difference. Every
other factor is where it stands between the least and the greatest of the versions that are compared, on a logarithmic
scale where values spread over orders of magnitude. In raw units (minutes, MiB, requests, ms) whichever has the largest
numbers decides alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.scoring.summed import Summed

if TYPE_CHECKING:
    from cachecontrol.scoring.columns import Columns
    from cachecontrol.scoring.facts import Limit
    from cachecontrol.scoring.ports import Floats
    from cachecontrol.scoring.settings import ScoringSettings


class WeightedLru(Summed):
    name = "weighted_lru"

    def __init__(self, settings: ScoringSettings) -> None:
        self._weights = settings.weighted_lru
        self._half_life_s = settings.half_life.total_seconds()

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:  # noqa: ARG002  # memory counts in both
        weights = self._weights
        return {
            "idle": -weights.idle * (1 - np.exp2(-columns.idle_s / self._half_life_s)),
            "memory": -weights.memory * _normalised(np.log1p(columns.size_mib)),
            "hits": weights.hits * _normalised(np.log1p(columns.rate_per_h)),
            "priority": weights.priority * _normalised(columns.weight),
            "reload": weights.reload * _normalised(np.log1p(columns.reload_ms)),
        }


def _normalised(values: Floats) -> Floats:
    """Where each stands between the least and the greatest, 0 to 1; all 0 where they are equal."""
    if not values.size:
        return values
    least, span = values.min(), values.max() - values.min()
    return (values - least) / span if span > 0 else np.zeros_like(values)
