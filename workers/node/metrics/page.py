"""The agent's ``/metrics``: its own share of the eight names, and how it is doing. A scrape asks nobody else."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cachecontrol import metrics
from workers.node.agent import Agent
from workers.node.errors import NotTrustedError
from workers.node.settings import Settings

_log = logging.getLogger(__name__)

_MOST_TENANTS: Final = 50
# So many attestations at most are read in one scrape; those of the others in the next ones.
_MOST_NEW: Final = 1000
_UNKNOWN: Final = "_unknown"


def make_registry(agent: Agent, settings: Settings) -> CollectorRegistry:
    """Everything that this agent tells."""
    registry = CollectorRegistry()
    registry.register(agent.tally.registry)
    registry.register(NodeCollector(agent, node=settings.node, base_model=settings.base_model))
    return registry


class NodeCollector(Collector):
    """What is found out at a scrape; threads share it."""

    def __init__(self, agent: Agent, *, node: str, base_model: str) -> None:
        self._agent = agent
        self._node = node
        self._base_model = base_model
        self._owners = Owners(agent)

    def describe(self) -> list[Metric]:
        """Nothing: registering needs no look at the node."""
        return []

    def collect(self) -> Iterator[Metric]:
        tally, sizes = self._agent.tally, self._agent.cache.version_bytes()
        yield metrics.hit_rate(
            tally.shares_found(),
            "Share of this node's last loads whose version was in this tier when they were asked for; "
            "gpu: in the engine already.",
        )
        held = sum(sizes.get(name, 0) for name in self._in_slots())
        yield metrics.gpu_memory(
            {self._node: held},
            "MB (10^6 bytes) of the files of what is in the engine's slots, or in the engine where it doesn't tell.",
        )
        yield metrics.evictions(
            tally.evictions(), "Versions that left the engine (gpu) or the disk of this node, and why."
        )
        yield metrics.mismatches(
            {self._node: tally.mismatches()}, "How often the engine was seen with a version from another path."
        )
        yield self._usage(sizes)
        yield from self._by_adapter()
        yield from self._state(sizes)

    def _in_slots(self) -> tuple[str, ...]:
        sight = self._agent.tally.sight
        if sight.tiers is None:
            return sight.loaded
        return tuple(name for name in sight.loaded if sight.tiers.get(name) == "gpu")

    def _usage(self, sizes: dict[str, int]) -> Metric:
        family = GaugeMetricFamily(
            metrics.QUOTA_USAGE,
            "What a tenant has of this node: bytes on its disk, and bytes of those that are in its engine.",
            labels=["tenant", "base_model", "resource"],
        )
        loaded = frozenset(self._agent.tally.sight.loaded)
        owners = self._owners.of(sizes)
        disk: defaultdict[str, int] = defaultdict(int)
        engine: defaultdict[str, int] = defaultdict(int)
        for name, size in sizes.items():
            disk[owners[name]] += size
            engine[owners[name]] += size if name in loaded else 0
        for resource, used in (("disk_bytes", disk), ("cpu_bytes", engine)):
            for tenant, size in metrics.bounded(used, most=_MOST_TENANTS, rank=int, add=sum).items():
                family.add_metric([tenant, self._base_model, resource], size)
        return family

    def _by_adapter(self) -> Iterable[Metric]:
        ttft = metrics.by_adapter(
            metrics.TTFT, "Milliseconds that the engine took to answer the probe at an adapter's last load here."
        )
        errors = metrics.by_adapter(metrics.ERROR_RATE, "Share of an adapter's last loads on this node that failed.")
        for labels, (failed, probe_ms) in self._agent.tally.adapters().items():
            errors.add_metric(labels, failed)
            if probe_ms is not None:
                ttft.add_metric(labels, probe_ms)
        return ttft, errors

    def _state(self, sizes: dict[str, int]) -> Iterable[Metric]:
        agent = self._agent
        sight = agent.tally.sight
        figures = {
            "engine_healthy": ("Whether the engine was well at the last heartbeat.", float(sight.healthy)),
            "engine_versions": ("Versions that the engine knew by name at the last heartbeat.", len(sight.loaded)),
            "disk_versions": ("Versions on the disk.", len(sizes)),
            "cache_bytes": ("Bytes that the disk cache takes.", agent.cache.used_bytes()),
            "commands_in_work": ("Versions that a command works on or waits for.", agent.lanes.count()),
            "loads_waiting": ("Loads that wait for the engine's turn.", agent.turn.waiting()),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(f"lorekeeper_node_{name}", text, value=value)


class Owners:
    """Whose each version on the disk is, by its attestation; read once for each."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = Lock()
        self._known: dict[str, str] = {}

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """The tenant of each; of some it may not be known yet."""
        wanted = set(names)
        with self._lock:
            self._known = {name: tenant for name, tenant in self._known.items() if name in wanted}
            for name in sorted(wanted - self._known.keys())[:_MOST_NEW]:
                self._known[name] = self._read(name)
            return {name: self._known.get(name, _UNKNOWN) for name in wanted}

    def _read(self, name: str) -> str:
        try:
            return self._agent.verifier.release(self._agent.cache.folder(name)).tenant
        except (NotTrustedError, OSError) as error:
            _log.info("%s: whose it is can't be told: %s", name, error)
            return _UNKNOWN
