"""What is known of a version when one has to go: the input of every scoring policy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class Limit(StrEnum):
    """What is short: places of an engine (every version takes one, whatever its size), or bytes."""

    SLOTS = "slots"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One version that could be evicted.

    ``rate_per_h`` and ``tenant_rate_per_h`` are exponentially decayed request rates (``rates.rate_per_h``) of the
    version and of its tenant, in requests per hour. ``hits`` counts its requests since it was registered.
    ``last_used_at`` is ``None`` when nobody has asked for it. ``size_mib`` is what it takes in the tier in question.
    ``reload_ms`` is the measured time to bring it back from the next tier down; ``queue_wait_ms`` is how long a load
    of that node waits now before it begins, so that both together are what a request for it would wait.
    ``weight`` is the tenant's priority weight (1, 2, 4). ``is_retiring``: its aliases moved on, or it was rolled back.
    ``clock`` is what the node's score clock showed when the version was last used (``ScoringPolicy.clock_after``).
    """

    version_id: UUID
    tenant: str
    rate_per_h: float
    tenant_rate_per_h: float
    hits: int
    last_used_at: datetime | None
    size_mib: float
    reload_ms: float
    weight: float
    is_retiring: bool
    clock: float
    queue_wait_ms: float = 0.0
