"""A fleet of the size that is promised, 1,000 nodes and 10,000 versions of 200 tenants, each time the same."""

from __future__ import annotations

import math
import random
from uuid import UUID

from cachecontrol.placement.facts import PlannedNode, PlannedVersion

NODES, VERSIONS, TENANTS = 1_000, 10_000, 200
# Llama-3.1-8B, all linear layers, bf16: 5 MiB per rank; how often each rank is met.
BYTES_PER_RANK = 5 * 2**20
RANKS = ((8, 0.30), (16, 0.30), (32, 0.20), (64, 0.12), (128, 0.08))
_ZIPF = 0.9
_HOTTEST_PER_H = 40_000.0
_GIB = 2**30


def nodes(places: int) -> list[PlannedNode]:
    """Nodes with 16 slots, 64 GiB of host memory and 500 GiB of disk; one in four serves ranks up to 128."""
    return [
        PlannedNode(
            name=f"node-{number:04}",
            base_digest="b" * 64,
            max_rank=128 if number % 4 == 0 else 64,
            gpu_slots=16,
            hot_limit=min(16, places),
            places=places,
            cpu_bytes=64 * _GIB,
            disk_bytes=500 * _GIB,
        )
        for number in range(NODES)
    ]


def versions(seed: int = 1) -> list[PlannedVersion]:
    """Versions with rates by Zipf's law; worth is the logarithm of the rate, as with ``density`` where slots count."""
    rng = random.Random(seed)  # noqa: S311  an example, not a secret
    ranks, shares = [rank for rank, _share in RANKS], [share for _rank, share in RANKS]
    made = []
    for place in range(VERSIONS):
        rate = _HOTTEST_PER_H / (place + 1) ** _ZIPF
        rank = rng.choices(ranks, shares)[0]
        made.append(
            PlannedVersion(
                version_id=UUID(int=rng.getrandbits(128)),
                tenant=f"tenant-{rng.randrange(TENANTS)}",
                base_digest="b" * 64,
                rank=rank,
                size_bytes=rank * BYTES_PER_RANK,
                rate_per_h=rate,
                keep=math.log(rate),
                weight=rng.choice((1, 1, 1, 2, 4)),
            )
        )
    return made
