"""A day of requests against one node, to see what a policy costs before it serves.

Loads take no time here: what a request would wait for one is summed up instead. What is asked for is always brought in,
as a node does it; nothing is prefetched, pinned, held by quotas or let go for its age.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from cachecontrol.replay.engine_lru import CPU, DISK, GPU, EngineLru
from cachecontrol.replay.heat import Heat
from cachecontrol.replay.tier import Tier
from cachecontrol.scoring.density import Density

if TYPE_CHECKING:
    from cachecontrol.replay.trace import Trace
    from cachecontrol.scoring.ports import Floats, ScoringPolicy
    from cachecontrol.scoring.settings import ScoringSettings

# What an engine takes for a version whose files are on its disk: measured on small ones, and an NVMe disk's rate.
_LOAD_MS: Final = 15.0
_DISK_MIB_PER_S: Final = 2000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """What a node has room for. ``disk_mib`` 0: nothing is kept on disk, each miss comes from the object store.

    The policy decides who stays in the engine; on disk it is density, as on a real node.

    ``places`` and ``memory_mib`` bound what the engine is told to hold. ``cpu_slots`` is what it holds on its own, and
    is never less than ``places``; ``frees_on_unload`` as in ``EngineLru``.
    """

    gpu_slots: int = 16
    places: float = 256
    memory_mib: float = math.inf
    disk_mib: float = 0.0
    cpu_slots: int | None = None
    frees_on_unload: bool = True


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a replay came to.

    ``gpu_hits``, ``cpu_hits``, ``disk_loads`` and ``remote_loads`` are requests by where they found their version.
    ``silent_reads``: the engine knew the name, and had dropped the weights. ``loaded_mib`` went into the engine,
    ``fetched_mib`` came from the object store. ``cost_ms`` is the cost-weighted misses: what requests waited for loads;
    ``weighted_cost_ms`` the same, times the tenant's priority weight.
    """

    gpu_hits: int = 0
    cpu_hits: int = 0
    silent_reads: int = 0
    disk_loads: int = 0
    remote_loads: int = 0
    loaded_mib: float = 0.0
    fetched_mib: float = 0.0
    cost_ms: float = 0.0
    weighted_cost_ms: float = 0.0

    @property
    def misses(self) -> int:
        return self.disk_loads + self.remote_loads

    @property
    def requests(self) -> int:
        return self.gpu_hits + self.cpu_hits + self.silent_reads + self.misses

    @property
    def miss_rate(self) -> float:
        """Misses of all requests, 0 to 1."""
        return self.misses / self.requests if self.requests else 0.0


def replay(trace: Trace, policy: ScoringPolicy, settings: ScoringSettings, shape: NodeShape) -> Tally:
    """The trace on an empty node of that shape under a policy."""
    node = _Node(trace, policy, settings, shape)
    entries = zip(trace.at.tolist(), trace.version.tolist(), trace.requests.tolist(), strict=True)
    for at, version, requests in entries:
        node.request(version, requests, at)
    return node.tally


def local_ms(trace: Trace) -> Floats:
    """What each version takes from the node's own disk into the engine, in ms."""
    return np.minimum(_LOAD_MS + trace.size_mib / _DISK_MIB_PER_S * 1000, trace.remote_ms)


class _Node:
    def __init__(self, trace: Trace, policy: ScoringPolicy, settings: ScoringSettings, shape: NodeShape) -> None:
        self.tally = Tally()
        self._heat = Heat(trace, settings)
        from_disk = local_ms(trace)
        has_disk = shape.disk_mib > 0
        self._engine = Tier(
            trace,
            self._heat,
            policy,
            reload_ms=from_disk if has_disk else trace.remote_ms,
            places=shape.places,
            mib=shape.memory_mib,
        )
        disk = Density(settings)
        self._disk = Tier(trace, self._heat, disk, reload_ms=trace.remote_ms - from_disk, mib=shape.disk_mib)
        places = int(min(shape.places, trace.versions))
        self._lru: EngineLru[int] = EngineLru(
            shape.gpu_slots, max(shape.cpu_slots or 0, places), frees_on_unload=shape.frees_on_unload
        )
        self._size_mib = trace.size_mib.tolist()
        self._disk_ms, self._remote_ms = from_disk.tolist(), trace.remote_ms.tolist()
        self._weight = trace.weight[trace.tenant].tolist()

    def request(self, version: int, requests: int, at: float) -> None:
        """The first of some requests of one time finds the version somewhere; the rest find it in a slot."""
        tally = self.tally
        found = self._lru.request(version)
        if found is None:
            self._miss(version, at)
        else:
            self._engine.touch(version)
            self._disk.touch(version)
            tally.gpu_hits += found == GPU
            tally.cpu_hits += found == CPU
            tally.silent_reads += found == DISK
        tally.gpu_hits += requests - 1
        self._heat.use(version, requests, at)

    def _miss(self, version: int, at: float) -> None:
        tally = self.tally
        on_disk = bool(self._disk.held[version])
        cost_ms = (self._disk_ms if on_disk else self._remote_ms)[version]
        tally.disk_loads += on_disk
        tally.remote_loads += not on_disk
        tally.loaded_mib += self._size_mib[version]
        tally.cost_ms += cost_ms
        tally.weighted_cost_ms += cost_ms * self._weight[version]
        if on_disk:
            self._disk.touch(version)
        else:
            tally.fetched_mib += self._size_mib[version]
            self._disk.bring(version, at, kept=self._engine.held)
        for left in self._engine.bring(version, at):
            self._lru.unload(left)
        if self._engine.held[version]:
            self._lru.load(version)
