"""Shares of two sides, or of one against a number: signed roots of likelihood ratios, and spreads.

For two sides the hypothesis is "the canary's share is that of stable plus ``difference``", at its likeliest rates as in
Farrington and Manning (Statistics in Medicine 9, 1990), the usual test of non-inferiority; it works with no events at
all, too. Everything is vectorised over arrays of one shape; counts may be fractions (deflated, or sums of marks). Half
a count is given to the hypothesis (Yates 1934): counts are discrete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import rel_entr

from releases.judge.evidence import log_evidence

if TYPE_CHECKING:
    from releases.judge.evidence import Floats

_HALVINGS = 40
_HALF = 0.5
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Counts:
    """``bad`` of ``of`` on each side."""

    bad_canary: Floats
    of_canary: Floats
    bad_stable: Floats
    of_stable: Floats

    def deflated(self, dispersion: Floats) -> Counts:
        """As many single observations as these are worth."""
        parts = (self.bad_canary, self.of_canary, self.bad_stable, self.of_stable)
        return Counts(*(part / dispersion for part in parts))


def log_harm(counts: Counts, difference: Floats | float, scale: Floats | float) -> Floats:
    """Evidence that the canary's share of bad ones is above stable's by more than ``difference``."""
    return _log_two_sided(counts, difference, scale, sign=1.0)


def log_safety(counts: Counts, difference: Floats | float, scale: Floats | float) -> Floats:
    """Evidence that the canary's share of bad ones is above stable's by less than ``difference``."""
    return _log_two_sided(counts, difference, scale, sign=-1.0)


def log_above(bad: Floats, of: Floats, share: float, scale: float) -> Floats:
    """Evidence that a share of bad ones is above ``share``."""
    return _log_one_sided(bad, of, share, scale, sign=1.0)


def log_below(bad: Floats, of: Floats, share: float, scale: float) -> Floats:
    """Evidence that a share of bad ones is below ``share``."""
    return _log_one_sided(bad, of, share, scale, sign=-1.0)


def _log_two_sided(counts: Counts, difference: Floats | float, scale: Floats | float, sign: float) -> Floats:
    of_canary, of_stable = np.maximum(counts.of_canary, _TINY), np.maximum(counts.of_stable, _TINY)
    bad_canary = np.clip(counts.bad_canary - sign * _HALF, 0, of_canary)
    bad_stable = np.minimum(counts.bad_stable, of_stable)
    stable = _likeliest(bad_canary, of_canary, bad_stable, of_stable, np.asarray(difference, dtype=np.float64))
    canary = np.clip(stable + difference, 0, 1)
    towards = sign * (bad_canary / of_canary - bad_stable / of_stable - difference)
    distance = _distance(bad_canary, of_canary, canary) + _distance(bad_stable, of_stable, stable)
    spread = np.sqrt(_variance(canary, of_canary) + _variance(stable, of_stable))
    return log_evidence(np.sign(towards) * np.sqrt(2 * distance), spread, scale)


def _log_one_sided(bad: Floats, of: Floats, share: float, scale: float, sign: float) -> Floats:
    of = np.maximum(of, _TINY)
    bad = np.clip(bad - sign * _HALF, 0, of)
    held = np.full_like(of, share)
    root = np.sign(sign * (bad / of - share)) * np.sqrt(2 * _distance(bad, of, held))
    return log_evidence(root, np.sqrt(_variance(held, of)), scale)


def _likeliest(bad_canary: Floats, of_canary: Floats, bad_stable: Floats, of_stable: Floats, by: Floats) -> Floats:
    """Stable's likeliest share where the canary's is higher by ``by``; by halving, as the slope only falls."""
    if not by.any():
        return np.asarray((bad_canary + bad_stable) / (of_canary + of_stable), dtype=np.float64)
    low, high = np.maximum(0.0, -by), np.minimum(1.0, 1.0 - by)
    low, high = np.broadcast_arrays(low + bad_stable * 0, high + bad_stable * 0)
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        shifted = middle + by
        slope = (bad_stable - of_stable * middle) / np.maximum(middle * (1 - middle), _TINY)
        slope = slope + (bad_canary - of_canary * shifted) / np.maximum(shifted * (1 - shifted), _TINY)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return np.asarray((low + high) / 2, dtype=np.float64)


def _distance(bad: Floats, of: Floats, share: Floats) -> Floats:
    """How much less likely ``share`` makes the counts than their own share does, as a logarithm; 0 or more."""
    share = np.clip(share, _TINY, 1 - _TINY)
    found = rel_entr(bad, of * share) + rel_entr(of - bad, of * (1 - share))
    return np.asarray(np.maximum(found, 0), dtype=np.float64)


def _variance(share: Floats, of: Floats) -> Floats:
    """Of a share that was found among ``of``; no less than with half an event, as none seen is not none possible."""
    least = np.minimum(_HALF / np.maximum(of, 1), _HALF)
    share = np.clip(share, least, 1 - least)
    return np.asarray(share * (1 - share) / of, dtype=np.float64)
