"""What the agent needs of an engine. Drivers raise only `workers.node.errors.EngineError` and its children."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine of this kind can do; the agent refuses commands that need more."""

    hot_load: bool
    hot_unload: bool
    lists_adapters: bool
    log_probabilities: bool


@dataclass(frozen=True, slots=True)
class Boot:
    """One life of the engine: `id` changes with each start, `healthy` is the engine's own opinion."""

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

    A value that is no number is NaN.
    """

    model: str
    log_probabilities: tuple[float, ...]


class Engine(Protocol):
    """One engine server, reachable by this agent and the gateways alone."""

    @property
    def capabilities(self) -> Capabilities: ...

    def boot(self) -> Boot:
        """Which life of the engine answers; `EngineAwayError` when none does."""
        ...

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """The adapters that the engine knows by name, without its base."""
        ...

    def load(self, *, name: str, path: Path) -> None:
        """Load from a folder, in full; already there from the same folder is success.

        Raises:
            EngineRefusedError: never this adapter, or the name is taken by another folder.
            EngineFailedError: it failed in the midst of it. EngineFullError: no place.

        """
        ...

    def unload(self, name: str) -> None:
        """Make the engine forget the name; unknown is success. It may read the files for a while yet."""
        ...

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """One short request to `model` alone; `EngineAwayError` when it isn't known (any more)."""
        ...
