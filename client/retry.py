"""When and how long to wait before an idempotent call is tried again."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

RETRIED_STATUSES = frozenset({429, 502, 503, 504})
_jitter = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter; a `Retry-After` in seconds takes its place. Times in seconds."""

    attempts: int = 4
    first_delay_s: float = 0.25
    longest_delay_s: float = 5.0
    longest_retry_after_s: float = 30.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def pause(self, attempt: int, response: httpx.Response | None = None) -> None:
        """Sleep before try number `attempt` + 1 (the first try is 1)."""
        self.sleep(self.delay_s(attempt, response))

    def delay_s(self, attempt: int, response: httpx.Response | None = None) -> float:
        """Return the seconds to wait after try number `attempt`."""
        asked = response.headers.get("retry-after", "") if response is not None else ""
        if asked.isascii() and asked.isdigit():
            return min(float(asked), self.longest_retry_after_s)
        longest = min(self.longest_delay_s, self.first_delay_s * 2.0 ** (attempt - 1))
        factor: float = _jitter.uniform(0.5, 1.0)
        return longest * factor
