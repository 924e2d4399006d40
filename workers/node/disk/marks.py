"""Which versions a full disk does without: pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from workers.node.disk.index import Kept

DropReason = Literal["pressure", "ttl"]


@dataclass(frozen=True, slots=True)
class Drop:
    """A version whose files the agent removes by itself."""

    name: str
    reason: DropReason


def outlived(kept: Iterable[Kept], *, ttl_s: float, now: float) -> tuple[Drop, ...]:
    """Those that nobody wanted or used for `ttl_s` seconds."""
    return tuple(Drop(each.name, "ttl") for each in kept if now - each.last_used >= ttl_s)


def in_the_way(
    kept: Iterable[Kept], *, to_free: int, may_go: Callable[[str], bool], first: Sequence[str] = ()
) -> tuple[Drop, ...]:
    """Those that may go and whose deletion frees so many bytes together, as far as they do.

    The names of `first` go in their order, then the least recently used ones.
    """
    drops: list[Drop] = []
    left, place = to_free, {name: number for number, name in enumerate(first)}
    for each in sorted(kept, key=lambda version: (place.get(version.name, len(place)), version.last_used)):
        if left <= 0:
            break
        if each.own_bytes > 0 and may_go(each.name):
            drops.append(Drop(each.name, "pressure"))
            left -= each.own_bytes
    return tuple(drops)


def excess(used: int, *, budget: int | None, high_water: float, low_water: float) -> int:
    """How many bytes are to be freed: down to the low mark, once the high one is passed; shares of the budget."""
    if budget is None or used <= budget * high_water:
        return 0
    return int(used - budget * low_water)
