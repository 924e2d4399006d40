"""What a trace without sizes, costs and priorities is taken to be: a fleet of adapters on one 8B base model.

All linear layers in bf16 take 5 MiB a rank there; an object store gives some 200 MiB/s, spread as latencies are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from cachecontrol.scoring.ports import Floats

MIB_PER_RANK: Final = 5
RANKS: Final = (8, 16, 32, 64, 128)
RANK_SHARES: Final = (0.30, 0.30, 0.20, 0.12, 0.08)
WEIGHTS: Final = (1.0, 2.0, 4.0)
WEIGHT_SHARES: Final = (0.60, 0.30, 0.10)
_FIXED_MS: Final = 100.0
_REMOTE_MIB_PER_S: Final = 200.0
_SPREAD: Final = 0.5


def sizes(versions: int, rng: np.random.Generator) -> Floats:
    """MiB of each version."""
    return MIB_PER_RANK * rng.choice(RANKS, size=versions, p=RANK_SHARES).astype(np.float64)


def remote_costs(size_mib: Floats, rng: np.random.Generator) -> Floats:
    """Ms that each version takes from the object store to where it serves."""
    spread = rng.lognormal(0.0, _SPREAD, size=len(size_mib))
    return (_FIXED_MS + size_mib / _REMOTE_MIB_PER_S * 1000) * spread


def weights(tenants: int, rng: np.random.Generator) -> Floats:
    """The priority weight of each tenant."""
    return rng.choice(WEIGHTS, size=tenants, p=WEIGHT_SHARES).astype(np.float64)
