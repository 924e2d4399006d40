import math
from collections.abc import Sequence

import numpy as np

from cachecontrol.replay.trace import Trace


def trace(
    requests: Sequence[int],
    *,
    size_mib: Sequence[float] | None = None,
    remote_ms: Sequence[float] | None = None,
    weight: Sequence[float] = (1.0,),
    every_s: float = 60.0,
    tenants: tuple[str, ...] = (),
) -> Trace:
    """Requests for versions by number, one a minute; version n is of the tenant n modulo their number."""
    versions = max(requests) + 1
    return Trace(
        name="made",
        at=np.arange(len(requests), dtype=np.float64) * every_s,
        version=np.array(requests, dtype=np.int64),
        requests=np.ones(len(requests), dtype=np.int64),
        size_mib=np.array(size_mib or [10.0] * versions),
        remote_ms=np.array(remote_ms or [100.0] * versions),
        tenant=np.arange(versions) % len(weight),
        weight=np.array(weight),
        retires_at=np.full(versions, math.inf),
        tenants=tenants,
    )
