"""How much each version and tenant of a trace is asked for, as time goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.scoring.columns import NEVER_USED_S, Columns
from cachecontrol.scoring.rates import rate_per_h

if TYPE_CHECKING:
    from cachecontrol.replay.trace import Numbers, Trace
    from cachecontrol.scoring.ports import Floats
    from cachecontrol.scoring.settings import ScoringSettings


class Heat:
    """Decayed counts of all versions and tenants, resident or not; times are seconds of the trace."""

    def __init__(self, trace: Trace, settings: ScoringSettings) -> None:
        """Begin with nothing asked for."""
        self._trace = trace
        self._half_life_s = settings.half_life.total_seconds()
        self._per_hour = rate_per_h(1.0, half_life=settings.half_life)
        self._count = np.zeros(trace.versions)
        self._hits = np.zeros(trace.versions)
        self._used_at = np.full(trace.versions, -NEVER_USED_S)
        self._tenant_count = np.zeros(len(trace.weight))
        self._tenant_used_at = np.full(len(trace.weight), -NEVER_USED_S)

    def use(self, version: int, requests: int, at: float) -> None:
        """Count requests of the time ``at``, which never goes back."""
        tenant = self._trace.tenant[version]
        _add(self._count, self._used_at, version, requests, at, self._half_life_s)
        _add(self._tenant_count, self._tenant_used_at, tenant, requests, at, self._half_life_s)
        self._hits[version] += requests

    def columns(self, versions: Numbers, *, at: float, reload_ms: Floats, clock: Floats) -> Columns:
        """What the policies look at, of some versions; ``reload_ms`` and ``clock`` of all are their tier's."""
        trace = self._trace
        tenants, half_life_s = trace.tenant[versions], self._half_life_s
        idle_s = at - self._used_at[versions]
        tenant_idle_s = at - self._tenant_used_at[tenants]
        return Columns(
            rate_per_h=self._per_hour * self._count[versions] * np.exp2(-idle_s / half_life_s),
            tenant_rate_per_h=self._per_hour * self._tenant_count[tenants] * np.exp2(-tenant_idle_s / half_life_s),
            hits=self._hits[versions],
            idle_s=idle_s,
            size_mib=trace.size_mib[versions],
            reload_ms=reload_ms[versions],
            weight=trace.weight[tenants],
            is_retiring=(trace.retires_at[versions] <= at).astype(np.float64),
            clock=clock[versions],
        )


def _add(counts: Floats, used_at: Floats, place: int, requests: int, at: float, half_life_s: float) -> None:
    counts[place] = counts[place] * 2.0 ** ((used_at[place] - at) / half_life_s) + requests
    used_at[place] = at
