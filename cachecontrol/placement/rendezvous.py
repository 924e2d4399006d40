"""Which nodes a version prefers: weighted rendezvous hashing (Thaler and Ravishankar, IEEE/ACM ToN 6(1), 1998).

Every pair of node and version has a number of its own, so that a node that leaves or joins changes nothing in the
order of the others. A node's weight is the share of versions it is to come first for.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT: Final = 2.0**-53


def node_seeds(names: Iterable[str]) -> NDArray[np.uint64]:
    return np.array([_seed(name.encode()) for name in names], dtype=np.uint64)


def version_seed(version_id: UUID) -> int:
    return _seed(version_id.bytes)


def preferences(seeds: NDArray[np.uint64], weights: NDArray[np.float64], version: int) -> NDArray[np.float64]:
    """How much the version prefers each node, the more the better: ``-weight / ln u`` with u in (0, 1) by hash."""
    mixed = (seeds ^ np.uint64(version)) + _GOLDEN
    mixed = (mixed ^ (mixed >> _S30)) * _MIX_1
    mixed = (mixed ^ (mixed >> _S27)) * _MIX_2
    mixed ^= mixed >> _S31
    unit = ((mixed >> _S11).astype(np.float64) + 0.5) * _UNIT
    return -weights / np.log(unit)


def _seed(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")
