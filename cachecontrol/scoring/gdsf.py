"""Greedy-Dual-Size-Frequency.

L. Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Labs HPL-98-69R1
(1998): ``K(f) = L + F(f) * C(f) / S(f)``. The clock ``L`` becomes the score of whoever is evicted, and a version takes
the clock along at each use: what is not used falls behind. Frequencies here outlast an eviction, as heat does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.scoring.facts import Limit
from cachecontrol.scoring.floors import MIN_SIZE_MIB
from cachecontrol.scoring.summed import Summed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cachecontrol.scoring.columns import Columns
    from cachecontrol.scoring.ports import Floats


class Gdsf(Summed):
    name = "gdsf"

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:
        worth = columns.hits * columns.reload_ms
        if limit is Limit.BYTES:
            worth = worth / np.maximum(columns.size_mib, MIN_SIZE_MIB)
        return {"clock": columns.clock, "worth": worth}

    def clock_after(self, clock: float, evicted: Iterable[float]) -> float:
        return max([clock, *evicted])
