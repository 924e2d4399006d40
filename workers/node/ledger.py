"""What was commanded last for each engine name, and how it ended; it outlives a SIGKILL."""

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, cast, get_args

from workers.node.durable import FULL, open_folder, read_json, write_whole
from workers.node.reports import Outcome

_log = logging.getLogger(__name__)

Act = Literal["warm", "fetch", "evict", "demote"]
# Longer than any grant lives: by then no command of an older generation can come any more.
KEEP_S = 24 * 3600


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
    """One small file per engine name below `folder`. Threads share it; for each name one of them writes.

    With `may_forget`, what a full disk has no room for is known as long as this process lives: what is loaded goes on
    changing places. A crash forgets it, which only an engine that lists its adapters itself makes good.
    """

    def __init__(self, folder: Path, *, may_forget: bool = False) -> None:
        self._folder = folder
        self._may_forget = may_forget
        self._unwritten: dict[str, Entry] = {}
        open_folder(folder)

    def accept(self, engine_name: str, *, generation: int, act: Act) -> Order:
        """Note the command durably if it is news, and say what to do with it."""
        order = _compare(self.entry(engine_name), generation, act)
        if order is Order.NEW:
            self._write(engine_name, Entry(generation, act))
        return order

    def compare(self, engine_name: str, *, generation: int, act: Act) -> Order:
        """Say what `accept` would, without noting anything."""
        return _compare(self.entry(engine_name), generation, act)

    def finish(self, outcome: Outcome) -> None:
        """Note how the command of this generation ended; a newer one is left alone."""
        entry = self.entry(outcome.engine_name)
        if entry is not None and entry.generation == outcome.generation:
            self._write(outcome.engine_name, Entry(entry.generation, entry.act, outcome))

    def prune(self, keep: Collection[str], *, now: float) -> int:
        """Forget names that are not in `keep` and of which nothing was heard for a day; how many."""
        old = [
            path
            for path in self._folder.glob("lk-*.json")
            if path.stem not in keep and path.stat().st_mtime + KEEP_S < now
        ]
        for path in old:
            path.unlink()
        return len(old)

    def entry(self, engine_name: str) -> Entry | None:
        """The last command for this name, None if there was none or its file is damaged."""
        if (unwritten := self._unwritten.get(engine_name)) is not None:
            return unwritten
        try:
            value = read_json(self._folder / f"{engine_name}.json")
            return _entry(value) if value else None
        except (ValueError, KeyError, TypeError):
            _log.exception("the ledger of %s is damaged; it begins anew", engine_name)
            return None

    def _write(self, engine_name: str, entry: Entry) -> None:
        outcome = entry.outcome.to_json() if entry.outcome else None
        value = {"generation": entry.generation, "act": entry.act, "outcome": outcome}
        # A power cut ends the engine's life too, and with it all that a forgotten entry could be wrong about.
        try:
            write_whole(self._folder / f"{engine_name}.json", json.dumps(value).encode())
        except OSError as error:
            if error.errno not in FULL or not self._may_forget:
                raise
            self._unwritten[engine_name] = entry
            _log.warning("%s g%d is not noted: the disk is full", engine_name, entry.generation)
        else:
            self._unwritten.pop(engine_name, None)


def _entry(value: Mapping[str, Any]) -> Entry:
    return Entry(
        generation=int(value["generation"]),
        act=_act(value["act"]),
        outcome=Outcome.from_json(value["outcome"]) if value["outcome"] else None,
    )


def _act(value: object) -> Act:
    if value not in get_args(Act):
        raise ValueError("not an act")
    return cast("Act", value)


def _compare(entry: Entry | None, generation: int, act: Act) -> Order:
    if entry is None or generation > entry.generation:
        return Order.NEW
    if generation == entry.generation and act == entry.act:
        return Order.AGAIN
    return Order.STALE
