"""From what is held to what is planned, a few steps at a time and in an order that leaves no version nowhere.

A version that moves is loaded at its new node before it leaves the old one. A node never holds more than it has places
and bytes for. Two that want each other's places would wait for ever: when nothing else is left to do, the less worthy
one leaves before it is loaded elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from cachecontrol.placement.facts import NOTHING, Holding, Plan

Pair = tuple[str, UUID]


class Step(StrEnum):
    """What is to be done with a version on a node.

    ``COOL`` and ``HEAT`` only change what counts as hot and send no command. ``LOAD``: into the engine (hot at once
    where the move says so). ``DEMOTE``: out of the engine, files kept. ``FETCH``: files to the disk, not loaded.
    ``DROP``: files off the disk, out of the engine first if it is loaded.
    """

    COOL = "cool"
    DEMOTE = "demote"
    LOAD = "load"
    HEAT = "heat"
    FETCH = "fetch"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Move:
    step: Step
    node: str
    version_id: UUID
    is_hot: bool = False


def between(plan: Plan, held: Holding, *, limit: int, arriving: frozenset[Pair] = frozenset()) -> tuple[Move, ...]:
    """The next moves from ``held`` towards ``plan``, in the order in which to do them.

    At most ``limit`` of them are commands: ``COOL`` and ``HEAT`` are free, and all that goes to an engine that changes
    its set by a restart counts as one. Nothing is sent to a node that isn't up. Look again with what is held then; an
    empty answer says that nothing is left to do but what is arriving.

    Args:
        plan: what is to be.
        held: what each node has, with what is on its way to it.
        limit: the most commands of this pass.
        arriving: what of ``held.loaded`` is not loaded yet, so that nobody else may rely on it.

    """
    one = _Pass(plan, held, limit=limit, arriving=arriving)
    one.cool()
    one.drop_unknown()
    one.load()
    one.demote()
    one.fetch()
    one.drop()
    if not one.spent:
        one.break_a_tie()
    one.heat()
    return tuple(one.moves)


class _Pass:
    """One pass: what is free while its moves are written down."""

    def __init__(self, plan: Plan, held: Holding, *, limit: int, arriving: frozenset[Pair]) -> None:
        self.plan, self.limit = plan, limit
        self.moves: list[Move] = []
        self.spent = 0
        self._held, self._arriving = held, arriving
        self._commanded: set[str] = set()
        self._blocked: list[Pair] = []
        self._up = [name for name, node in plan.nodes.items() if node.is_up]
        self._loaded = _sets(held.loaded, self._up)
        self._disk = _sets(held.disk, self._up)
        self._ready = {
            version_id
            for name in self._up
            for version_id in plan.loaded.get(name, NOTHING) & held.loaded.get(name, NOTHING)
            if (name, version_id) not in arriving
        }
        self._homed = {version_id for planned in plan.loaded.values() for version_id in planned}

    def cool(self) -> None:
        for name in self._up:
            for version_id in self._ordered(self._held.hot.get(name, NOTHING) - self.plan.hot.get(name, NOTHING)):
                self.moves.append(Move(Step.COOL, name, version_id))

    def heat(self) -> None:
        for name in self._up:
            staying = self._held.loaded.get(name, NOTHING) & self._loaded[name]
            hot = self.plan.hot.get(name, NOTHING) - self._held.hot.get(name, NOTHING)
            for version_id in self._ordered(hot & staying):
                self.moves.append(Move(Step.HEAT, name, version_id))

    def drop_unknown(self) -> None:
        """What may not be served any more goes first."""
        for name in self._up:
            held = self._loaded[name] | self._disk[name]
            for version_id in sorted(version_id for version_id in held if version_id not in self.plan.needs):
                self._command(Step.DROP, name, version_id)

    def load(self) -> None:
        missing = [
            (name, version_id)
            for name in self._up
            for version_id in self.plan.loaded.get(name, NOTHING) - self._loaded[name]
        ]
        for name, version_id in sorted(missing, key=self._urgency):
            leaving, unwanted = self._room_for(name, version_id)
            if leaving is None or unwanted is None:
                self._blocked.append((name, version_id))
            elif self._affords(name, len(leaving) + len(unwanted) + 1):
                for other in leaving:
                    self._take_out(name, other)
                for other in unwanted:
                    self._command(Step.DROP, name, other)
                self._command(Step.LOAD, name, version_id)

    def demote(self) -> None:
        for name in self._up:
            for version_id in self._may_leave(name):
                self._take_out(name, version_id)

    def fetch(self) -> None:
        for name in self._up:
            there = self._disk[name] | self._loaded[name]
            for version_id in self._ordered(self.plan.disk.get(name, NOTHING) - there, best_first=True):
                unwanted = self._disk_room(name, version_id)
                if unwanted is not None and self._affords(name, len(unwanted) + 1):
                    for other in unwanted:
                        self._command(Step.DROP, name, other)
                    self._command(Step.FETCH, name, version_id)

    def drop(self) -> None:
        for name in self._up:
            for version_id in self._unwanted_files(name):
                self._command(Step.DROP, name, version_id)

    def break_a_tie(self) -> None:
        arriving = {version_id for _name, version_id in self._arriving}
        for name, _version_id in self._blocked:
            leaving = self._ordered(self._loaded[name] - self.plan.loaded.get(name, NOTHING) - arriving)
            if leaving:
                self._take_out(name, leaving[0])
                return

    def _take_out(self, name: str, version_id: UUID) -> None:
        """Out of the engine; the files too where the plan has no room for them."""
        keeps_files = version_id in self.plan.disk.get(name, NOTHING)
        self._command(Step.DEMOTE if keeps_files else Step.DROP, name, version_id)

    def _may_leave(self, name: str) -> list[UUID]:
        """What the plan has elsewhere and is ready there, or has in no engine; the least worthy first."""
        surplus = self._loaded[name] - self.plan.loaded.get(name, NOTHING)
        return self._ordered(
            version_id for version_id in surplus if version_id in self._ready or version_id not in self._homed
        )

    def _room_for(self, name: str, version_id: UUID) -> tuple[list[UUID] | None, list[UUID] | None]:
        """What leaves the engine and the disk for the version; None: that isn't enough now."""
        node, size = self.plan.nodes[name], self._size(version_id)
        places = node.room - len(self._loaded[name])
        free = None if node.cpu_bytes is None else node.cpu_bytes - self._sum(self._loaded[name])
        leaving: list[UUID] = []
        for other in self._may_leave(name):
            if places > 0 and (free is None or free >= size):
                break
            leaving.append(other)
            places += 1
            free = None if free is None else free + self._size(other)
        if places <= 0 or (free is not None and free < size):
            return None, None
        return leaving, self._disk_room(name, version_id)

    def _disk_room(self, name: str, version_id: UUID) -> list[UUID] | None:
        budget = self.plan.nodes[name].disk_bytes
        if budget is None or version_id in self._disk[name]:
            return []
        free = budget - self._sum(self._disk[name]) - self._sum(self._loaded[name])
        unwanted: list[UUID] = []
        for other in self._unwanted_files(name):
            if free >= self._size(version_id):
                break
            unwanted.append(other)
            free += self._size(other)
        return unwanted if free >= self._size(version_id) else None

    def _unwanted_files(self, name: str) -> list[UUID]:
        wanted = self.plan.disk.get(name, NOTHING) | self.plan.loaded.get(name, NOTHING)
        return self._ordered(self._disk[name] - wanted)

    def _command(self, step: Step, name: str, version_id: UUID) -> None:
        """Write a command down, unless the pass has enough."""
        if not self._affords(name, 1):
            return
        self.spent += self._price(name, 1)
        self._commanded.add(name)
        is_hot = step is Step.LOAD and version_id in self.plan.hot.get(name, NOTHING)
        self.moves.append(Move(step, name, version_id, is_hot=is_hot))
        self._loaded[name].discard(version_id)
        self._disk[name].discard(version_id)
        if step is Step.LOAD:
            self._loaded[name].add(version_id)
        elif step is not Step.DROP:
            self._disk[name].add(version_id)

    def _affords(self, name: str, commands: int) -> bool:
        return self.spent + self._price(name, commands) <= self.limit

    def _price(self, name: str, commands: int) -> int:
        if self.plan.nodes[name].capabilities.runtime_load:
            return commands
        return 0 if name in self._commanded else 1

    def _urgency(self, pair: Pair) -> tuple[bool, float, UUID, str]:
        name, version_id = pair
        is_hot = version_id in self.plan.hot.get(name, NOTHING)
        return not is_hot, -self.plan.needs[version_id].standing, version_id, name

    def _ordered(self, version_ids: Iterable[UUID], *, best_first: bool = False) -> list[UUID]:
        return sorted(version_ids, key=self._standing, reverse=best_first)

    def _standing(self, version_id: UUID) -> tuple[float, UUID]:
        need = self.plan.needs.get(version_id)
        return (need.standing if need else float("-inf")), version_id

    def _size(self, version_id: UUID) -> int:
        need = self.plan.needs.get(version_id)
        return need.version.size_bytes if need else 0

    def _sum(self, version_ids: Iterable[UUID]) -> int:
        return sum(self._size(version_id) for version_id in version_ids)


def _sets(held: Mapping[str, frozenset[UUID]], names: Iterable[str]) -> dict[str, set[UUID]]:
    return {name: set(held.get(name, NOTHING)) for name in names}
