"""What was asked for and when, and what each version weighs and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachecontrol.scoring.ports import Floats

    Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Requests in the order of time, and the versions they are for.

    ``at`` is in seconds, never falling; ``version`` an index into the arrays of versions; ``requests`` how many
    requests one entry stands for (a source that counts by the minute is replayed in a few entries a minute).

    By version: ``size_mib``; ``remote_ms``, the time to bring it from the object store to where it serves;
    ``tenant``, an index into ``weight``, the priority weights by tenant; ``retires_at`` in seconds, infinite for one
    that doesn't. ``tenants`` are the names by tenant, empty where a source has none.
    """

    name: str
    at: Floats
    version: Numbers
    requests: Numbers
    size_mib: Floats
    remote_ms: Floats
    tenant: Numbers
    weight: Floats
    retires_at: Floats
    tenants: tuple[str, ...] = ()

    @property
    def versions(self) -> int:
        return len(self.size_mib)

    @property
    def total_requests(self) -> int:
        return int(self.requests.sum())
