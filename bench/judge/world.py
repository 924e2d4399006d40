"""Simulated releases: what the requests of both sides come to, slice by slice, for many releases at a time.

Times are drawn as counts by class, as the judge gets them; a count by class of a Poisson number of values is Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from releases.judge.binomial import Counts
from releases.judge.facts import CLASSES_PER_DOUBLING
from releases.judge.tails import beyond_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from releases.judge.evidence import Floats

    Ids = NDArray[np.int64]

SLICE_S = 20
# Of all requests: how many get a mark from people, and how many of those are bad.
MARKED, BAD_MARKS = 0.02, 0.2
# A common trouble begins once in five minutes and lasts one; a client that retries comes once in ten minutes.
_BEGINS, _LASTS, _WORSE = SLICE_S / 300, SLICE_S / 60, 10.0
_RETRIES, _RETRIED = SLICE_S / 600, 40
_LOAD_KEEPS, _LOAD_SD = 0.9, 0.3


@dataclass(frozen=True, slots=True)
class Step:
    """A canary's share of the requests, for how long at least, and how long it is waited for a verdict."""

    share: float
    at_least_min: int = 10
    at_most_min: int = 60

    @property
    def slices(self) -> int:
        return self.at_most_min * 60 // SLICE_S

    @property
    def first_pass(self) -> int:
        return self.at_least_min * 60 // SLICE_S


# The canary steps of the default template.
STEPS = (Step(0.10), Step(0.50))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``requests_per_s`` of both sides together; ``factor``: how much worse the canary is."""

    name: str
    requests_per_s: float = 20.0
    factor: float = 1.0
    error_rate: float = 0.01
    pattern: str = "steady"
    spread: float = 0.5
    heavy: float = 0.0


@dataclass(slots=True)
class Errors:
    """Requests and errors of the releases of one step. ``slices`` are of shape (4, slices, releases)."""

    rng: np.random.Generator
    case: Case
    step: Step
    releases: int
    slices: Floats = field(init=False)
    drawn: int = 0
    _trouble: Any = None

    def __post_init__(self) -> None:
        self.slices = np.zeros((4, self.step.slices, self.releases))
        self._trouble = np.zeros(self.releases, dtype=bool)

    def draw(self, ids: Ids) -> None:
        """One more slice of these releases."""
        rates = np.full(len(ids), self.case.error_rate)
        if self.case.pattern == "trouble":
            rates *= np.where(self._troubled(ids), _WORSE, 1.0)
        for side, (share, factor) in enumerate(((self.step.share, self.case.factor), (1 - self.step.share, 1.0))):
            of = self.rng.poisson(self.case.requests_per_s * SLICE_S * share, len(ids))
            bad = self.rng.binomial(of, np.minimum(rates * factor, 1.0))
            more = self._retries(share, len(ids)) if self.case.pattern == "retries" else 0
            self.slices[2 * side, self.drawn, ids], self.slices[2 * side + 1, self.drawn, ids] = bad + more, of + more
        self.drawn += 1

    def so_far(self, ids: Ids) -> Counts:
        """By slice, of shape (releases, slices)."""
        return Counts(*(part[: self.drawn, ids].T for part in self.slices))

    def _troubled(self, ids: Ids) -> NDArray[np.bool_]:
        chance = self.rng.random(len(ids))
        self._trouble[ids] = np.where(self._trouble[ids], chance > _LASTS, chance < _BEGINS)
        return np.asarray(self._trouble[ids])

    def _retries(self, share: float, releases: int) -> NDArray[np.int64]:
        """One client is on one side; all it does within a slice fails."""
        clients = self.rng.poisson(_RETRIES * share, releases)
        return clients * self.rng.poisson(_RETRIED, releases)


@dataclass(slots=True)
class Times:
    """A measure's counts beyond each class, of the releases of one step; ``whole`` are sums over slices."""

    rng: np.random.Generator
    case: Case
    step: Step
    releases: int
    median: float = 200.0
    drawn: int = 0
    whole: Floats = field(init=False)
    counts: Floats = field(init=False)
    lowest: int = field(init=False)
    _by_slice: NDArray[np.uint16] = field(init=False)
    _shares: list[Floats] = field(init=False)
    _load: Floats = field(init=False)

    def __post_init__(self) -> None:
        widest = 4.0 * self.case.spread + (5.0 if self.case.heavy else 0.0) + (1.2 if self._is_loaded else 0.0)
        highest = np.log(self.median) + widest + np.log(self.case.factor)
        edges = np.log(self.median) - 4.0 * self.case.spread, highest
        self.lowest, last = (int(np.floor(edge / np.log(2) * CLASSES_PER_DOUBLING)) for edge in edges)
        bounds = np.arange(self.lowest, last + 1) * np.log(2) / CLASSES_PER_DOUBLING - np.log(self.median)
        self._shares = [self._of_classes(bounds - np.log(factor)) for factor in (self.case.factor, 1.0)]
        self.whole = np.zeros((2, self.releases, len(bounds)))
        self.counts = np.zeros((2, self.releases, len(bounds) - 1))
        self._by_slice = np.zeros((2, self.step.slices, self.releases, len(bounds)), dtype=np.uint16)
        self._load = self.rng.normal(0, _LOAD_SD, self.releases)

    def draw(self, ids: Ids) -> None:
        """One more slice of these releases."""
        shifts = self._shifts(ids)
        for side, share in enumerate((self.step.share, 1 - self.step.share)):
            expected = self._shares[side] * (self.case.requests_per_s * SLICE_S * share)
            by_release = _moved(expected, shifts) if self._is_loaded else expected
            drawn = self.rng.poisson(by_release, (len(ids), len(expected)))
            self.counts[side, ids] += drawn
            beyond = beyond_of(drawn.astype(np.float64))
            self.whole[side, ids] += beyond
            self._by_slice[side, self.drawn, ids] = beyond
        self.drawn += 1

    def so_far(self, ids: Ids) -> tuple[Floats, Floats]:
        """By slice, of shape (releases, slices, classes)."""
        canary, stable = (np.swapaxes(side[: self.drawn, ids], 0, 1).astype(np.float64) for side in self._by_slice)
        return canary, stable

    def beyond(self, ids: Ids, canary: Ids, stable: Ids) -> Counts:
        """By slice, of shape (releases, slices): what lies in or beyond a class for each release and side."""
        last = self.whole.shape[-1] - 1
        parts = []
        for side, places in zip(self._by_slice, (canary, stable), strict=True):
            parts += [side[: self.drawn, ids, np.clip(places, 0, last)], side[: self.drawn, ids, 0]]
        return Counts(*(part.T.astype(np.float64) for part in parts))

    @property
    def _is_loaded(self) -> bool:
        return self.case.pattern == "load"

    def _of_classes(self, bounds: Floats) -> Floats:
        """Log-normal, a share of them times a Pareto's tail of index 1.2 (no mean worth the name)."""
        below = ndtr(bounds / self.case.spread)
        if self.case.heavy:
            below = below * (1 - self.case.heavy) + self.case.heavy * (1 - np.exp(-1.2 * np.maximum(bounds, 0)))
        return np.diff(np.concatenate([[0.0], below[1:-1], [1.0]]))

    def _shifts(self, ids: Ids) -> Ids:
        """Load that both sides feel, going up and down slowly, in classes."""
        fresh = self.rng.normal(0, _LOAD_SD * np.sqrt(1 - _LOAD_KEEPS**2), len(ids))
        self._load[ids] = _LOAD_KEEPS * self._load[ids] + fresh
        shifts: Ids = np.rint(self._load[ids] / np.log(2) * CLASSES_PER_DOUBLING).astype(np.int64)
        return shifts


def _moved(expected: Floats, shifts: Ids) -> Floats:
    places = np.arange(len(expected)) - shifts[:, np.newaxis]
    inside = (places >= 0) & (places < len(expected))
    return np.where(inside, expected[np.clip(places, 0, len(expected) - 1)], 0.0)
