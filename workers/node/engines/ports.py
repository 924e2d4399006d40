"""What the agent needs of an engine. Drivers raise only `workers.node.errors.EngineError` and its children."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

EngineTier = Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine of this kind can do; the planner's copy is `cachecontrol.engines`, a test compares them.

    Attributes:
        runtime_load: loads and unloads without a restart. Where not, `load` has the engine restarted, which takes as
            long as a start takes and counts as the same life; it wants to be called by several threads at once: calls
            that come within a moment share one restart.
        true_unload: an unload frees the memory, and is over when it returns.
        reads_back: `tiers` says where each adapter's weights are.
        pins: `load` can keep an adapter in its slot.
        re_reads_disk: it may read the files of a name that it knows at any time.
        has_cpu_tier: it knows more adapters than it has slots.
        reports_in_use: `in_use` says which adapters have requests running or waiting.
        lists_adapters: `list_loaded` is the engine's own word; where not, it is the driver's book of what it sent.
        names_its_model: an answer says which model gave it; where not, only a probe tells an adapter from the base.
        log_probabilities: `read_prompt` works.

    """

    runtime_load: bool
    true_unload: bool
    reads_back: bool
    pins: bool
    re_reads_disk: bool
    has_cpu_tier: bool
    reports_in_use: bool
    lists_adapters: bool
    names_its_model: bool
    log_probabilities: bool


@dataclass(frozen=True, slots=True)
class Boot:
    """One life of the engine, `healthy` is its own opinion.

    `id` changes with each start that a driver did not ask for itself, to give the engine one more adapter.
    """

    id: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class LoadedAdapter:
    """A name that the engine knows, and the path it was loaded from. It says nothing of where the weights are."""

    name: str
    root: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How a model reads a prompt: its own name, and the log-probability of each token after the first.

    A value that is no number is NaN. The name is the one that was asked for where the engine says none.
    """

    model: str
    log_probabilities: tuple[float, ...]


class Engine(Protocol):
    """One engine server, reachable by this agent and the gateways alone. Threads may share it."""

    @property
    def capabilities(self) -> Capabilities: ...

    def close(self) -> None:
        """Give up its connections."""
        ...

    def boot(self) -> Boot:
        """Which life of the engine answers; `EngineAwayError` when none does."""
        ...

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """The adapters that the engine knows by name, without its base."""
        ...

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:
        """Load from a folder, in full; already there from the same folder is success.

        `pinned` asks an engine that `pins` to keep it in its slot; others ignore it.

        Raises:
            EngineRefusedError: never this adapter, or the name is taken by another folder.
            EngineFailedError: it failed in the midst of it. EngineFullError: no place.
            EngineAwayError: not now.

        """
        ...

    def unload(self, name: str) -> None:
        """Make the engine forget the name; unknown is success. It may read the files for a while yet.

        Raises:
            EngineBusyError: it is forgotten for new requests, and those in flight have not ended in time.

        """
        ...

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """One short request to `model` alone; `EngineAwayError` when it isn't known (any more)."""
        ...

    def steady(self) -> AbstractContextManager[None]:
        """For a probe: no load of another thread restarts the engine while in the block; waits for one that does."""
        ...

    def in_use(self) -> frozenset[str] | None:
        """The adapters with requests running or waiting; None where the engine doesn't tell, or can't just now.

        A request that came in this very moment may be missing.
        """
        ...

    def tiers(self) -> Mapping[str, EngineTier] | None:
        """Where each adapter's weights are; None where the engine doesn't tell."""
        ...

    def progress(self) -> float | None:
        """A number that is another one after each step of its work on requests; None where the engine doesn't tell."""
        ...


class Restarter(Protocol):
    """The way to restart the engine's process, if the operator gave one."""

    @property
    def available(self) -> bool: ...

    def restart(self) -> None:
        """Have the engine restarted, and return when that was set going. It may not answer for a while yet.

        Raises:
            RestartError: there is no way, or it failed.

        """
        ...
