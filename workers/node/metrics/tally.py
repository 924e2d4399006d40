"""What an agent counts of its own work, in memory: it begins anew with the process."""

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from cachecontrol.metrics import LOAD_BUCKETS, LOAD_LATENCY
from registry.signing.grants import Grant
from workers.node.disk.marks import DropReason
from workers.node.engines.ports import EngineTier
from workers.node.ledger import Act
from workers.node.reports import Outcome

# Of how many of its last loads the shares are.
RECENT: Final = 1000
RECENT_OF_ADAPTER: Final = 100
# So many adapters are told apart: those that were commanded last.
MOST_ADAPTERS: Final = 100
_LEAVES: Final[dict[tuple[Act, str], str]] = {("evict", "evicted"): "gpu", ("demote", "on_disk"): "gpu"}


@dataclass(frozen=True, slots=True)
class EngineSight:
    """What the last heartbeat saw of the engine; ``tiers`` None: it doesn't tell."""

    healthy: bool = False
    loaded: tuple[str, ...] = ()
    tiers: Mapping[str, EngineTier] | None = None


@dataclass(slots=True)
class AdapterTally:
    """The last loads of an adapter: whether each failed, and how long its last probe took in milliseconds."""

    failures: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT_OF_ADAPTER))
    probe_ms: int | None = None


class Tally:
    """Threads share it; `registry` has what is counted over the whole life of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._load_ms = Histogram(
            LOAD_LATENCY,
            "Time from the begin of a load command to its end on this node, by how it ended.",
            ["outcome"],
            buckets=LOAD_BUCKETS,
            registry=self.registry,
        )
        self._commands = Counter(
            "lorekeeper_node_commands", "Commands ended, by what was asked.", ["act", "outcome"], registry=self.registry
        )
        self._fetched = Counter(
            "lorekeeper_node_fetched_bytes", "Bytes downloaded from the store.", registry=self.registry
        )
        self._lock = Lock()
        self._found: deque[str] = deque(maxlen=RECENT)
        self._evictions: dict[tuple[str, str], int] = {}
        self._mismatched: frozenset[tuple[str, str]] = frozenset()
        self._mismatches = 0
        self._adapters: OrderedDict[tuple[str, str], AdapterTally] = OrderedDict()
        self.sight = EngineSight()

    # --- what happened

    def ended(self, act: Act, grant: Grant | None, outcome: Outcome) -> None:
        """A command came to its end."""
        self._commands.labels(act, outcome.outcome).inc()
        self._fetched.inc(outcome.fetched_bytes)
        if act == "warm":
            self._load_ms.labels(outcome.outcome).observe(sum(outcome.timings_ms.values()))
        with self._lock:
            if act == "warm" and outcome.outcome == "loaded":
                self._found.append("remote" if outcome.fetched_bytes else "disk")
            if act == "warm" and grant is not None:
                self._note_load(grant, outcome)
            if tier := _LEAVES.get((act, outcome.outcome)):
                self._add_eviction(tier, "asked")

    def again(self, act: Act, outcome: Outcome) -> None:
        """A command found done already what it asks for."""
        if act == "warm" and outcome.outcome == "loaded":
            with self._lock:
                self._found.append("gpu")

    def dropped(self, reason: DropReason) -> None:
        """The agent removed a version's files by itself."""
        with self._lock:
            self._add_eviction("disk", reason)

    def saw(self, sight: EngineSight, *, boot_id: str, mismatched: tuple[str, ...]) -> None:
        """The engine was looked at; a name that it has from elsewhere counts once until it doesn't any more."""
        with self._lock:
            self.sight = sight
            now = frozenset((boot_id, name) for name in mismatched)
            self._mismatches += len(now - self._mismatched)
            self._mismatched = now

    # --- what is told of it

    def shares_found(self) -> dict[str, float]:
        """Of the last loads that were asked for, the share of which the version was found in each tier."""
        with self._lock:
            found = list(self._found)
        return {tier: found.count(tier) / len(found) for tier in set(found)}

    def evictions(self) -> dict[tuple[str, str], int]:
        """By the tier that was left and the reason: asked, or why the agent did it by itself."""
        with self._lock:
            return dict(self._evictions)

    def mismatches(self) -> int:
        with self._lock:
            return self._mismatches

    def adapters(self) -> dict[tuple[str, str], tuple[float, int | None]]:
        """By tenant and adapter: the share of its last loads that failed, and its last probe's milliseconds."""
        with self._lock:
            return {
                key: (sum(each.failures) / len(each.failures), each.probe_ms) for key, each in self._adapters.items()
            }

    def _note_load(self, grant: Grant, outcome: Outcome) -> None:
        key = grant.tenant, grant.adapter
        tally = self._adapters.setdefault(key, AdapterTally())
        self._adapters.move_to_end(key)
        tally.failures.append(outcome.outcome == "failed")
        tally.probe_ms = outcome.timings_ms.get("probe", tally.probe_ms)
        if len(self._adapters) > MOST_ADAPTERS:
            self._adapters.popitem(last=False)

    def _add_eviction(self, tier: str, reason: str) -> None:
        self._evictions[tier, reason] = self._evictions.get((tier, reason), 0) + 1
