"""The least that a quantity counts as where its logarithm is taken, or where it divides.

A rate below the floor counts as the floor: of versions that nobody has asked for in some fifteen half-lives, cost,
weight and the last use decide, not which of two rates is the smaller nothing.
"""

from __future__ import annotations

from typing import Final

MIN_RATE_PER_H: Final = 1e-4
MIN_RELOAD_MS: Final = 1.0
MIN_SIZE_MIB: Final = 1 / 1024
MIN_WEIGHT: Final = 1e-3
