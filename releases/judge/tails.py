"""Quantiles of sketches: as numbers, and as counts of how many of each side lie beyond a common one.

That two sides have the same p95 is tested by who is among the slowest 5 % of both together: of each side a share of
5 %, if so (Mood's test of 1950; for quantiles at any look: Howard and Ramdas, Bernoulli 28, 2022).
Nothing is assumed of the shape, so heavy tails don't matter. "At most r times as slow" is the same question after the
canary's values are divided by r: with classes that grow by a constant factor, a shift by whole classes.

``beyond`` arrays count, in their last axis, what lies in a class or a higher one: its first entry is everything, its
last 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from releases.judge.facts import CLASSES_PER_DOUBLING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from releases.judge.evidence import Floats

    Places = NDArray[np.int64]


def beyond_of(counts: Floats) -> Floats:
    """From counts by class to counts of a class or higher; the last axis gets one longer."""
    reversed_sums = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([reversed_sums, np.zeros_like(reversed_sums[..., :1])], axis=-1)


def common_place(canary: Floats, stable: Floats, quantile: float, shift: Places | int) -> Places:
    """The highest class beyond which at least ``1 - quantile`` of both sides lie, the canary shifted down by ``shift``.

    The sides are ``beyond`` arrays of the whole window. Places are stable's and may lie outside of what is counted.
    """
    last = canary.shape[-1] - 1
    shift = np.asarray(shift, dtype=np.int64)[..., np.newaxis]
    widest = int(np.abs(shift).max())
    places = np.broadcast_to(np.arange(-widest, last + widest + 1), (*canary.shape[:-1], last + 2 * widest + 1))
    both = at_place(canary, places + shift) + at_place(stable, places)
    enough = both >= (1 - quantile) * both[..., :1]
    return np.asarray(enough.sum(-1) - 1 - widest, dtype=np.int64)


def at_place(beyond: Floats, places: Places) -> Floats:
    """What lies in the class at each place or higher; ``places`` has as many axes as ``beyond``."""
    return np.take_along_axis(beyond, np.clip(places, 0, beyond.shape[-1] - 1), axis=-1)


def value_at(beyond: Floats, quantile: float, lowest_class: int) -> float:
    """The quantile in the measure's unit, of one ``beyond`` array that isn't empty; within a class by its logarithm."""
    wanted = (1 - quantile) * beyond[0]
    place = int((beyond >= wanted).sum()) - 1
    inside = beyond[place] - beyond[place + 1] if place + 1 < len(beyond) else 0.0
    from_top = (wanted - beyond[place + 1]) / inside if inside > 0 else 0.0
    return float(2.0 ** ((lowest_class + place + 1 - from_top) / CLASSES_PER_DOUBLING))
