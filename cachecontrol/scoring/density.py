"""Worth for its room, the default: how often a version is asked for, and what each miss would cost.

``keep = ln r + b ln c + a ln w - s ln size - phi ln R_tenant + ln rho``: r is the decayed request rate, c the cost in
ms of bringing the version back from the next tier down, w its tenant's priority weight, size in MiB (s is 1 where bytes
are the limit, 0 where slots are), R the tenant's decayed rate (a loud tenant's versions compete with each other before
they push out a quiet one's), and rho applies once a version retires or was rolled back. With b = s = 1 and the rest 0
it orders as the greedy solution of the knapsack problem does (Dantzig 1957), value per room; the roots of cost and
weight (b = a = 0.5) give some of that up for fewer misses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.scoring.facts import Limit
from cachecontrol.scoring.floors import MIN_RATE_PER_H, MIN_RELOAD_MS, MIN_SIZE_MIB, MIN_WEIGHT
from cachecontrol.scoring.summed import Summed

if TYPE_CHECKING:
    from cachecontrol.scoring.columns import Columns
    from cachecontrol.scoring.ports import Floats
    from cachecontrol.scoring.settings import ScoringSettings


class Density(Summed):
    name = "density"

    def __init__(self, settings: ScoringSettings) -> None:
        self._settings = settings

    def terms(self, columns: Columns, *, limit: Limit) -> dict[str, Floats]:
        constants = self._settings
        terms = {
            "rate": _ln(columns.rate_per_h, MIN_RATE_PER_H),
            "reload": constants.b * _ln(columns.reload_ms, MIN_RELOAD_MS),
            "priority": constants.a * _ln(columns.weight, MIN_WEIGHT),
            "tenant_rate": -constants.phi * _ln(columns.tenant_rate_per_h, MIN_RATE_PER_H),
            "retiring": columns.is_retiring * float(np.log(constants.rho)),
        }
        if limit is Limit.BYTES:
            terms["size"] = -_ln(columns.size_mib, MIN_SIZE_MIB)
        return terms


def _ln(values: Floats, floor: float) -> Floats:
    return np.log(np.maximum(values, floor))
