"""Rows, queue and node as plain data, for the machine that reconciles them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from cachecontrol.drift import NodeReport
from cachecontrol.services.outcomes import CommandOutcome
from cachecontrol.states import OBSERVED_MOVES, Desired, ErrorClass, Observed, Outcome
from workers.node.ledger import Entry

BEGIN = datetime(2026, 7, 4, 12, tzinfo=UTC)
Act = Literal["warm", "fetch", "demote", "evict"]


class Clock:
    """Stands in for ``django.utils.timezone`` where the real code asks for the time."""

    time = BEGIN

    def now(self) -> datetime:
        return self.time


CLOCK = Clock()


@dataclass
class Row:
    """A residency, with the names that the real code reads."""

    version: Any
    state_changed_at: datetime
    pk: int = 1
    desired: str = Desired.GPU.value
    observed: str = Observed.ABSENT.value
    generation: int = 1
    acted_generation: int = 0
    command_sent_at: datetime | None = None
    attempts: int = 0
    retry_at: datetime | None = None
    drain_until: datetime | None = None
    message: str = ""
    error_class: str = ""
    error_code: str = ""
    load_ms: int | None = None
    fetched_bytes: int = 0
    is_hot: bool = False

    def set(self, facts: dict[str, Any]) -> None:
        for name, value in facts.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    def move(self, to: Observed, facts: dict[str, Any]) -> None:
        was = Observed(self.observed)
        assert (was, to) in OBSERVED_MOVES, f"a move that the node's word leads to isn't allowed: {was} to {to}"
        self.set({"observed": to.value, "state_changed_at": CLOCK.now(), **facts})


@dataclass
class Version:
    """What the registry says of it, and how its wishes went."""

    engine_name: str
    revoked: bool = False
    row: Row | None = None
    wishes: dict[int, Act] = field(default_factory=dict)
    sent: list[tuple[int, datetime]] = field(default_factory=list)
    last_generation: int = 0


@dataclass(frozen=True)
class Message:
    index: int
    generation: int
    act: Act


@dataclass
class Look:
    """A heartbeat that has been taken and not yet answered."""

    body: NodeReport
    accepted: int


@dataclass
class Node:
    """Agent and engine."""

    ledger: dict[int, Entry] = field(default_factory=dict)
    ended: dict[tuple[int, int], tuple[Outcome, ErrorClass | None, int]] = field(default_factory=dict)
    accepted: int = 0
    on_disk: set[int] = field(default_factory=set)
    loaded: set[int] = field(default_factory=set)
    boot: int = 1
    away: bool = False
    outbox: list[tuple[int, CommandOutcome]] = field(default_factory=list)
    look: Look | None = None
    watches_use: bool = False
