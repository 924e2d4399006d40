"""What mixing ranks costs a node (CaraServe, arXiv 2401.11240; Toppings, USENIX ATC 2025).

A decode step that serves several adapters takes time that grows linearly with the highest rank of the batch (kernels
that pad: BGMV) or with the sum of the ranks (kernels that don't: MBGMV). A node's cost per hour is therefore its
request rate times that rank, and the cost of one more version is what it adds for itself and for all others there.
The unit is rank x requests per hour; only differences between nodes matter.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cachecontrol.placement.facts import RankCost


@dataclass(frozen=True, slots=True)
class RankLoad:
    """What a node serves: the highest and the summed rank of what it has loaded, and its requests per hour."""

    highest: int = 0
    summed: int = 0
    rate_per_h: float = 0.0


def added_cost(load: RankLoad, *, rank: int, rate_per_h: float, model: RankCost = RankCost.HIGHEST) -> float:
    """What a version of ``rank`` with ``rate_per_h`` adds to the node's cost."""
    one = added_costs(
        np.array([load.highest], dtype=np.float64),
        np.array([load.summed], dtype=np.float64),
        np.array([load.rate_per_h], dtype=np.float64),
        rank=rank,
        rate_per_h=rate_per_h,
        model=model,
    )
    return float(one[0])


def added_costs(
    highest: NDArray[np.float64],
    summed: NDArray[np.float64],
    rates_per_h: NDArray[np.float64],
    *,
    rank: int,
    rate_per_h: float,
    model: RankCost,
) -> NDArray[np.float64]:
    """``added_cost`` for many nodes at once."""
    if model is RankCost.SUMMED:
        return rate_per_h * (summed + rank) + rates_per_h * rank
    reached = np.maximum(highest, rank)
    return rate_per_h * reached + rates_per_h * (reached - highest)
