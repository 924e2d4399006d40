"""What was commanded last for each engine name, and how it ended; it outlives a SIGKILL."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from workers.node.durable import read_json, write_json
from workers.node.reports import Outcome

_log = logging.getLogger(__name__)

Act = Literal["warm", "evict"]


class Order(StrEnum):
    """How a command's generation compares with what is known: go on, finish it again, or leave it."""

    NEW = "new"
    AGAIN = "again"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Entry:
    """The last command for a name; `outcome` is None until it ended."""

    generation: int
    act: Act
    outcome: Outcome | None = None


class Ledger:
    """One small file per engine name below `folder`; commands come one at a time, readers may be other threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._accepted = 0
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def accepted(self) -> int:
        """How many commands were accepted since the start; a change tells a reader that its view is old."""
        return self._accepted

    def accept(self, engine_name: str, *, generation: int, act: Act) -> Order:
        """Note the command durably if it is news, and say what to do with it."""
        with self._lock:
            order = _compare(self.entry(engine_name), generation, act)
            if order is Order.NEW:
                self._write(engine_name, Entry(generation, act))
            if order is not Order.STALE:
                self._accepted += 1
            return order

    def compare(self, engine_name: str, *, generation: int, act: Act) -> Order:
        """Say what `accept` would, without noting anything."""
        return _compare(self.entry(engine_name), generation, act)

    def finish(self, outcome: Outcome) -> None:
        """Note how the command of this generation ended; a newer one is left alone."""
        with self._lock:
            entry = self.entry(outcome.engine_name)
            if entry is not None and entry.generation == outcome.generation:
                self._write(outcome.engine_name, Entry(entry.generation, entry.act, outcome))

    def entry(self, engine_name: str) -> Entry | None:
        """The last command for this name, None if there was none or its file is damaged."""
        try:
            value = read_json(self._folder / f"{engine_name}.json")
            return _entry(value) if value else None
        except (ValueError, KeyError, TypeError):
            _log.exception("the ledger of %s is damaged; it begins anew", engine_name)
            return None

    def _write(self, engine_name: str, entry: Entry) -> None:
        outcome = entry.outcome.to_json() if entry.outcome else None
        write_json(
            self._folder / f"{engine_name}.json",
            {"generation": entry.generation, "act": entry.act, "outcome": outcome},
        )


def _entry(value: Mapping[str, Any]) -> Entry:
    return Entry(
        generation=int(value["generation"]),
        act="evict" if value["act"] == "evict" else "warm",
        outcome=Outcome.from_json(value["outcome"]) if value["outcome"] else None,
    )


def _compare(entry: Entry | None, generation: int, act: Act) -> Order:
    if entry is None or generation > entry.generation:
        return Order.NEW
    if generation == entry.generation and act == entry.act:
        return Order.AGAIN
    return Order.STALE
