"""Facts of many versions as arrays, so that a replay of a day scores with the very formulas that serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cachecontrol.scoring.facts import Facts
    from cachecontrol.scoring.ports import Floats

# Idle time of a version that nobody has asked for: longer than any that was used.
NEVER_USED_S: Final = 100 * 365 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """``Facts`` by field, one element a version. ``idle_s`` is the time since the last request in seconds.

    ``reload_ms`` includes the wait in the load queue.
    """

    rate_per_h: Floats
    tenant_rate_per_h: Floats
    hits: Floats
    idle_s: Floats
    size_mib: Floats
    reload_ms: Floats
    weight: Floats
    is_retiring: Floats
    clock: Floats


def columns_of(facts: Sequence[Facts], *, now: datetime) -> Columns:
    """The arrays of facts, in their order."""

    def column(values: Sequence[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    return Columns(
        rate_per_h=column([fact.rate_per_h for fact in facts]),
        tenant_rate_per_h=column([fact.tenant_rate_per_h for fact in facts]),
        hits=column([fact.hits for fact in facts]),
        idle_s=column([_idle_s(fact, now) for fact in facts]),
        size_mib=column([fact.size_mib for fact in facts]),
        reload_ms=column([fact.reload_ms + fact.queue_wait_ms for fact in facts]),
        weight=column([fact.weight for fact in facts]),
        is_retiring=column([fact.is_retiring for fact in facts]),
        clock=column([fact.clock for fact in facts]),
    )


def _idle_s(fact: Facts, now: datetime) -> float:
    if fact.last_used_at is None:
        return NEVER_USED_S
    return max((now - fact.last_used_at).total_seconds(), 0.0)
