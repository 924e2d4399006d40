"""``weighted_lru`` with its factors in minutes, MiB, requests per hour and ms, as it is often written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachecontrol.scoring.summed import Summed

if TYPE_CHECKING:
    from cachecontrol.scoring.columns import Columns
    from cachecontrol.scoring.facts import Limit
    from cachecontrol.scoring.ports import Floats
    from cachecontrol.scoring.settings import ScoringSettings


class RawWeightedLru(Summed):
    """The same weights, nothing normalised."""

    name = "weighted_lru, raw"

    def __init__(self, settings: ScoringSettings) -> None:
        """Take the weights."""
        self._weights = settings.weighted_lru

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:  # noqa: ARG002  # memory counts in both
        """The factors, each by its weight."""
        weights = self._weights
        return {
            "idle": -weights.idle * columns.idle_s / 60,
            "memory": -weights.memory * columns.size_mib,
            "hits": weights.hits * columns.rate_per_h,
            "priority": weights.priority * columns.weight,
            "reload": weights.reload * columns.reload_ms,
        }
