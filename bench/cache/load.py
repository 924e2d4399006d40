"""Who asks for what, when: sessions with a skewed and slowly drifting choice of versions. Pure and repeatable."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.cache.plan import Plan

_HOT = 6  # what drifts in and out of the most popular


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request for the version with this number comes `at` seconds after the start."""

    at: float
    version: int


def arrivals(plan: Plan) -> list[Arrival]:
    """All requests of one arm, in the order of their arrival.

    Sessions come as a Poisson process; each chooses one version by Zipf's law over the order of popularity of its
    moment, and asks a geometric number of times with exponential pauses. Every `drift_s` one of the six most popular
    versions changes places with one from below.
    """
    chance = random.Random(plan.seed)  # noqa: S311  a load, not a secret
    found: list[Arrival] = []
    for began, order in _sessions(plan, chance):
        version = chance.choices(order, _weights(plan))[0]
        found += [Arrival(at, version) for at in _asks(plan, chance, began)]
        # Sessions overlap: a later one can still put a request before those found so far.
        if len(found) > 2 * plan.requests:
            break
    return sorted(found, key=lambda arrival: arrival.at)[: plan.requests]


def shares(asked: Sequence[Arrival]) -> list[float]:
    """How much of the load each version gets, the most popular first."""
    total = Counter(arrival.version for arrival in asked)
    return [times / len(asked) for _version, times in total.most_common()]


def _sessions(plan: Plan, chance: random.Random) -> Iterator[tuple[float, list[int]]]:
    order = list(range(plan.versions))
    chance.shuffle(order)
    now, drifted = 0.0, 0.0
    for _number in count():
        now += chance.expovariate(plan.rate / plan.session)
        while now > drifted + plan.drift_s:
            drifted += plan.drift_s
            hot, cold = chance.randrange(_HOT), chance.randrange(_HOT, plan.versions)
            order[hot], order[cold] = order[cold], order[hot]
        yield now, order


def _asks(plan: Plan, chance: random.Random, began: float) -> Iterator[float]:
    at = began
    yield at
    while chance.random() > 1 / plan.session:
        at += chance.expovariate(1 / plan.think_s)
        yield at


def _weights(plan: Plan) -> list[float]:
    return [rank**-plan.exponent for rank in range(1, plan.versions + 1)]
