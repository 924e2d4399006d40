"""Releases from their first canary step to their end, with a look at each slice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench.judge import arms
from bench.judge.world import BAD_MARKS, MARKED, SLICE_S, STEPS, Case, Errors, Step, Times
from releases.judge.finding import Bars
from releases.judge.settings import JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bench.judge.arms import Told
    from bench.judge.world import Ids

    # Of some releases: which fail, which pass.
    Look = Callable[[Ids], tuple[Told, Told]]

CHUNK = 1_000
SETTINGS = JudgeSettings()
BARS = Bars.of(SETTINGS)


@dataclass(frozen=True, slots=True)
class Tally:
    """Shares of releases.

    ``minutes``: until a rollback or a promotion, the median of those. ``naive``: rolled back by the other way.
    """

    rolled_back: float
    promoted: float
    held: float
    minutes: float | None
    naive: float


def run(case: Case, metrics: tuple[str, ...], releases: int, seed: int) -> Tally:
    """``metrics`` of "errors", "ttft", "total", "cost", "quality": those that are looked at, all of them ``case``'s."""
    rng = np.random.default_rng(seed)
    ends, minutes, naive = [], [], []
    for begin in range(0, releases, CHUNK):
        size = min(CHUNK, releases - begin)
        end, took, other = _chunk(rng, case, metrics, size)
        ends.append(end)
        minutes.append(took)
        naive.append(other)
    end, took = np.concatenate(ends), np.concatenate(minutes)
    over = took[end != 0]
    return Tally(
        rolled_back=float((end < 0).mean()),
        promoted=float((end > 0).mean()),
        held=float((end == 0).mean()),
        minutes=float(np.median(over)) if len(over) else None,
        naive=float(np.concatenate(naive).mean()),
    )


def _chunk(
    rng: np.random.Generator, case: Case, metrics: tuple[str, ...], size: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], Told]:
    """How each ended (-1 rolled back, 1 promoted, 0 held), when, and whether the other way had rolled it back."""
    end, slices, naive = np.ones(size, dtype=np.int64), np.zeros(size), np.zeros(size, dtype=bool)
    for step in STEPS:
        going = np.flatnonzero(end > 0)
        worlds = {name: _world(name, rng, case, step, size) for name in metrics}
        end[going] = 0
        for number in range(1, step.slices + 1):
            # The other way looks at all releases until the least time is over.
            is_early, is_other = number < step.first_pass, number <= step.first_pass
            drawn = np.arange(size) if is_other else going
            for world in worlds.values():
                world.draw(drawn)
            if is_other:
                naive |= _naive(worlds, drawn)
            slices[going] += 1
            if number >= SETTINGS.minimum_slices and len(going):
                fails, passes = _look(worlds, going, is_early=is_early)
                end[going[fails]], end[going[passes]] = -1, 1
                going = going[end[going] == 0]
            if not len(going) and number >= step.first_pass:
                break
    return end, slices * SLICE_S / 60, naive


def _world(name: str, rng: np.random.Generator, case: Case, step: Step, size: int) -> Errors | Times:
    if name == "quality":
        # Good or bad: the same as errors, with fewer of them and a higher share.
        case, name = replace(case, requests_per_s=case.requests_per_s * MARKED, error_rate=BAD_MARKS), "errors"
    return Errors(rng, case, step, size) if name == "errors" else Times(rng, case, step, size)


def _look(worlds: dict[str, Errors | Times], going: Ids, *, is_early: bool) -> tuple[Told, Told]:
    fails, passes = np.zeros(len(going), dtype=bool), np.ones(len(going), dtype=bool)
    for name, world in worlds.items():
        bad, good = _told(name, world, going, is_early=is_early)
        fails |= bad
        passes &= good
    return fails, passes & ~fails


def _told(name: str, world: Errors | Times, going: Ids, *, is_early: bool) -> tuple[Told, Told]:
    rule = getattr(SETTINGS, name)
    if isinstance(world, Times):
        return arms.quantiles(world, going, rule, BARS, is_early=is_early)
    return arms.rates(world, going, rule, BARS, is_early=is_early, are_marks=name == "quality")


def _naive(worlds: dict[str, Errors | Times], ids: Ids) -> Told:
    found = np.zeros(len(ids), dtype=bool)
    for world in worlds.values():
        found |= arms.mann_whitney(world, ids) if isinstance(world, Times) else arms.z_test(world, ids)
    return found
