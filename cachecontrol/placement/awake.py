"""How many nodes a pool's load needs, and which; the others may stay idle (as in Punica, arXiv 2310.18547)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from cachecontrol.placement.draft import UNLIMITED, Draft
from cachecontrol.placement.facts import NOTHING, Need


@dataclass(slots=True)
class _Sum:
    """What versions need in all, or what nodes have in all."""

    rate: float = 0.0
    places: int = 0
    hot: int = 0
    cpu_bytes: int = 0
    disk_bytes: int = 0
    nodes: int = 0

    def covers(self, other: "_Sum") -> bool:
        return (
            self.rate >= other.rate
            and self.places >= other.places
            and self.hot >= other.hot
            and self.cpu_bytes >= other.cpu_bytes
            and self.disk_bytes >= other.disk_bytes
            and self.nodes >= other.nodes
        )


def choose_awake(draft: Draft, loaded: Mapping[str, frozenset[UUID]]) -> None:
    """Mark the nodes that the plan may use without waking another one.

    All that are in use, and as many more as the load needs. Nodes are given up only when clearly fewer are enough.
    """
    if not draft.settings.consolidates:
        return
    draft.is_awake[:] = False
    for base in draft.bases:
        _choose_in_pool(draft, base, loaded)


def _choose_in_pool(draft: Draft, base: str, loaded: Mapping[str, frozenset[UUID]]) -> None:
    numbers = np.flatnonzero(draft.bases[base]).tolist()
    used = [number for number in numbers if _is_used(draft, number, loaded)]
    needed = _needed(draft, base, _in_order(draft, numbers, loaded))
    fixed = [number for number in used if not _can_sleep(draft, number)]
    shrinks = len(needed | set(fixed)) < draft.settings.give_up_below * len(used)
    draft.is_awake[[*needed, *(fixed if shrinks else used)]] = True


def _is_used(draft: Draft, number: int, loaded: Mapping[str, frozenset[UUID]]) -> bool:
    """Whether anything is there that is wanted: what is merely kept doesn't keep a node awake."""
    held = loaded.get(draft.nodes[number].name, NOTHING)
    return draft.nodes[number].is_keeping and any(
        version_id in draft.needs and draft.needs[version_id].replicas for version_id in held
    )


def _can_sleep(draft: Draft, number: int) -> bool:
    """A cordoned node keeps what it has, and one that changes its set by a restart isn't restarted to be idle."""
    node = draft.nodes[number]
    return node.is_open and node.capabilities.runtime_load


def _in_order(draft: Draft, numbers: Iterable[int], loaded: Mapping[str, frozenset[UUID]]) -> list[int]:
    """The open nodes, those that have most first: they are cheapest to go on with."""
    needs = draft.needs

    def rank(number: int) -> tuple[float, int, int]:
        held = [
            needs[version_id] for version_id in loaded.get(draft.nodes[number].name, NOTHING) if version_id in needs
        ]
        return -sum(need.share_per_h for need in held), -len(held), int(draft.seeds[number])

    return sorted((number for number in numbers if draft.nodes[number].is_open), key=rank)


def _needed(draft: Draft, base: str, ordered: list[int]) -> set[int]:
    """The first nodes that are enough: level by level, since high ranks go to nodes with a high limit alone."""
    needs = [need for need in draft.needs.values() if need.replicas and need.version.base_digest == base]
    levels = sorted({draft.nodes[number].max_rank for number in ordered}, reverse=True)
    chosen: set[int] = set()
    for place, level in enumerate(levels):
        lower = levels[place + 1] if place + 1 < len(levels) else -1
        wanted = _wanted(need for need in needs if need.version.rank > lower)
        has = _Sum()
        fitting = [number for number in ordered if draft.nodes[number].max_rank >= level]
        for number in sorted(fitting, key=lambda number: number not in chosen):
            if number not in chosen and has.covers(wanted):
                break
            chosen.add(number)
            _count_node(has, draft, number)
    return chosen


def _wanted(needs: Iterable[Need]) -> _Sum:
    wanted = _Sum()
    for need in needs:
        copies = need.replicas
        wanted.rate += need.version.rate_per_h
        wanted.places += copies
        wanted.hot += copies * need.is_hot
        wanted.cpu_bytes += copies * need.version.size_bytes
        wanted.nodes = max(wanted.nodes, copies)
    wanted.disk_bytes = wanted.cpu_bytes
    return wanted


def _count_node(has: _Sum, draft: Draft, number: int) -> None:
    node = draft.nodes[number]
    has.rate += float(draft.capacity[number]) * draft.settings.fill
    has.places += node.room
    has.hot += node.hot_limit
    has.cpu_bytes += UNLIMITED if node.cpu_bytes is None else node.cpu_bytes
    has.disk_bytes += UNLIMITED if node.disk_bytes is None else node.disk_bytes
    has.nodes += 1
