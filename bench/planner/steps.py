"""What is held once moves are done, as nodes that do everything at once would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachecontrol.placement.changes import Move, Step
from cachecontrol.placement.facts import NOTHING, Holding

if TYPE_CHECKING:
    from collections.abc import Iterable


def applied(held: Holding, moves: Iterable[Move]) -> Holding:
    for move in moves:
        held = _applied(held, move)
    return held


def _applied(held: Holding, move: Move) -> Holding:
    loaded, hot, disk = dict(held.loaded), dict(held.hot), dict(held.disk)
    one = frozenset({move.version_id})
    if move.step not in {Step.COOL, Step.HEAT}:
        for kind in (loaded, hot, disk):
            kind[move.node] = kind.get(move.node, NOTHING) - one
    target = {Step.LOAD: loaded, Step.DEMOTE: disk, Step.FETCH: disk, Step.HEAT: hot}.get(move.step)
    if target is not None:
        target[move.node] = target.get(move.node, NOTHING) | one
    if move.is_hot:
        hot[move.node] = hot.get(move.node, NOTHING) | one
    if move.step is Step.COOL:
        hot[move.node] = hot.get(move.node, NOTHING) - one
    return Holding(loaded=loaded, hot=hot, disk=disk)
