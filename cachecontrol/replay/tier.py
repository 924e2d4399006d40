"""One tier of a replayed node: who is in it, and who makes room."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.scoring.choose import fewest_first
from cachecontrol.scoring.facts import Limit
from cachecontrol.scoring.summed import total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cachecontrol.replay.heat import Heat
    from cachecontrol.replay.trace import Trace
    from cachecontrol.scoring.ports import Floats, ScoringPolicy

    Flags = NDArray[np.bool_]
    Places = NDArray[np.intp]


class Tier:
    """Versions within bounds of number and of MiB; ``reload_ms`` is what each costs to bring back, by version."""

    def __init__(
        self,
        trace: Trace,
        heat: Heat,
        policy: ScoringPolicy,
        *,
        reload_ms: Floats,
        places: float = math.inf,
        mib: float = math.inf,
    ) -> None:
        """Begin empty."""
        self._heat = heat
        self._policy = policy
        self._reload_ms = reload_ms
        self._rooms = {Limit.SLOTS: np.ones(trace.versions), Limit.BYTES: trace.size_mib}
        self._free = {Limit.SLOTS: places, Limit.BYTES: mib}
        self._now_clock = 0.0
        self._clock = np.zeros(trace.versions)
        self._held = np.zeros(trace.versions, dtype=np.bool_)

    @property
    def held(self) -> Flags:
        """Who is in this tier, one flag a version."""
        return self._held

    def touch(self, version: int) -> None:
        """It was used: it takes the clock along."""
        self._clock[version] = self._now_clock

    def bring(self, version: int, at: float, *, kept: Flags | None = None) -> list[int]:
        """Take it in, and say who left for it; none of ``kept`` does. What can't be made room for stays outside."""
        left: list[int] = []
        for limit, rooms in self._rooms.items():
            need = float(rooms[version]) - self._free[limit]
            if need > 0:
                left += self._make_room(limit, need, at, kept)
        if all(rooms[version] <= self._free[limit] for limit, rooms in self._rooms.items()):
            self._held[version] = True
            self._take(version, 1)
            self.touch(version)
        return left

    def _make_room(self, limit: Limit, need: float, at: float, kept: Flags | None) -> list[int]:
        candidates = np.flatnonzero(self._held if kept is None else self._held & ~kept)
        if not candidates.size:
            return []
        columns = self._heat.columns(candidates, at=at, reload_ms=self._reload_ms, clock=self._clock)
        values = total(self._policy.terms(columns, limit=limit))
        first = _first(values, columns.idle_s, self._rooms[limit][candidates], need)
        self._now_clock = self._policy.clock_after(self._now_clock, values[first].tolist())
        leaving: list[int] = candidates[first].tolist()
        for one in leaving:
            self._held[one] = False
            self._take(one, -1)
        return leaving

    def _take(self, version: int, sign: int) -> None:
        for limit, rooms in self._rooms.items():
            self._free[limit] -= sign * float(rooms[version])


def _first(values: Floats, idle_s: Floats, rooms: Floats, need: float) -> Places:
    """Who goes, by place: as ``choose_victims`` chooses, the places being in the order of ids."""
    least = np.flatnonzero(values == values.min())
    if least.size == 1 and rooms[least[0]] >= need:
        return least  # Nearly always; everybody's order need not be known for it.
    order = np.lexsort((-idle_s, values))
    return order[fewest_first(rooms[order].tolist(), need)]
