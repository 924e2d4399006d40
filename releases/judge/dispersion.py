"""How many single observations one is worth: the design effect of slices (Kish 1965), here the variance between them.

Tests of shares take requests for independent. A client that retries, or a node that stumbles, makes many bad ones at
once: then the sum of what slices differ by varies more than that of single requests would. The ratio is what all counts
are divided by. What hits both sides alike, by their shares of the requests, cancels; so does a lasting difference
between the sides, which is taken out first (Mantel and Haenszel 1959). Slices are the last axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from releases.judge.binomial import Counts
    from releases.judge.evidence import Floats

# Where marks vary less than a coin does, observations are worth more than one; how many slices it takes to believe it.
_BELIEF, _LEAST = 10.0, 0.1
_TINY = 1e-12


def of_events(slices: Counts) -> Floats:
    """For events that happen or don't: 1 or more."""
    return np.maximum(_two_sided(slices)[0], 1.0)


def of_marks(slices: Counts) -> Floats:
    """For marks between 0 and 1: below 1 where they differ little."""
    return _believed(*_two_sided(slices))


def of_marks_alone(bad: Floats, of: Floats) -> Floats:
    """For marks of one side."""
    share = bad.sum(-1, keepdims=True) / np.maximum(of.sum(-1, keepdims=True), _TINY)
    return _believed(*_ratio(bad - of * share, of * share * (1 - share), of > 0))


def of_events_alone(bad: Floats, of: Floats) -> Floats:
    """For events of one side."""
    share = bad.sum(-1, keepdims=True) / np.maximum(of.sum(-1, keepdims=True), _TINY)
    return np.maximum(_ratio(bad - of * share, of * share * (1 - share), of > 0)[0], 1.0)


def _two_sided(slices: Counts) -> tuple[Floats, Floats]:
    canary, stable = np.maximum(slices.of_canary, _TINY), np.maximum(slices.of_stable, _TINY)
    counts = (slices.of_canary > 0) & (slices.of_stable > 0)
    # Half the harmonic mean: what a slice's difference of shares weighs.
    weight = np.where(counts, canary * stable / (canary + stable), 0.0)
    gap = weight * (slices.bad_canary / canary - slices.bad_stable / stable)
    lasting = gap.sum(-1, keepdims=True) / np.maximum(weight.sum(-1, keepdims=True), _TINY)
    expected = _variance(slices.bad_canary, canary) + _variance(slices.bad_stable, stable)
    return _ratio(gap - weight * lasting, weight**2 * expected, counts)


def _variance(bad: Floats, of: Floats) -> Floats:
    """Of a slice's share, at the share of all slices."""
    share = bad.sum(-1, keepdims=True) / of.sum(-1, keepdims=True)
    return np.asarray(share * (1 - share) / of, dtype=np.float64)


def _ratio(rest: Floats, expected: Floats, counts: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """What was found by what single observations would make, 1 where nothing can vary; and of how many slices."""
    slices = counts.sum(-1).astype(np.float64)
    total = expected.sum(-1)
    found = (rest**2).sum(-1) / np.maximum(total, _TINY) * slices / np.maximum(slices - 1, 1)
    return np.where((slices > 1) & (total > _TINY), found, 1.0), slices


def _believed(found: Floats, slices: Floats) -> Floats:
    shrunk = (slices * found + _BELIEF) / (slices + _BELIEF)
    return np.where(found > 1, found, np.maximum(shrunk, _LEAST))
