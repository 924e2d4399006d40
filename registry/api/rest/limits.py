"""Rate limits: so many requests a minute for each token, and for each address without one.

Counted in Django's cache (Valkey) with a sliding window of two counters. While the cache is away nothing is limited:
a limit protects the registry from its callers and must not be what takes it down.
"""

import logging
import time
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from registry.actors import Actor

if TYPE_CHECKING:
    # DRF reads its settings, and with them this module, while it defines the class.
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)
_WINDOW_S: Final = 60
# While the cache is away, how long until it is asked again: a request must not wait for it each time.
_PAUSE_S: Final = 5.0


class RateLimit(BaseThrottle):
    """DRF's throttle for every view that asks for a token; ``settings.RATE_LIMITS`` by kind of caller, 0 for none."""

    def __init__(self) -> None:
        self._wait_s: float | None = None

    def allow_request(self, request: Request, view: "APIView") -> bool:
        kind, name = _caller(request)
        limit = settings.RATE_LIMITS[kind]
        if limit == 0:
            return True
        self._wait_s = COUNTERS.take(f"rate:{kind}:{name}", limit=limit, now=time.time())
        return self._wait_s is None

    def wait(self) -> float | None:
        return self._wait_s


class Counters:
    """Counters in the cache; open to everybody while it is away."""

    def __init__(self) -> None:
        self._ask_again_at = 0.0

    def take(self, name: str, *, limit: int, now: float) -> float | None:
        """Count one request at ``now`` (Unix seconds); None if it is within ``limit``, else the seconds to wait."""
        if time.monotonic() < self._ask_again_at:
            return None
        try:
            return _take(name, limit=limit, now=now)
        except (RedisError, OSError) as error:
            self._ask_again_at = time.monotonic() + _PAUSE_S
            logger.warning("the cache does not answer, so nothing is rate limited for %g s: %s", _PAUSE_S, error)
            return None


COUNTERS: Final = Counters()


def _take(name: str, *, limit: int, now: float) -> float | None:
    window, elapsed = divmod(now, _WINDOW_S)
    current, previous = f"{name}:{int(window)}", f"{name}:{int(window) - 1}"
    found = cache.get_many([current, previous])
    before = found.get(previous, 0) * (1 - elapsed / _WINDOW_S)
    if found.get(current, 0) + before >= limit:
        return _seconds_until_free(found.get(current, 0), found.get(previous, 0), limit=limit, elapsed=elapsed)
    if current not in found:
        cache.add(current, 0, timeout=2 * _WINDOW_S)
    try:
        cache.incr(current)
    except ValueError:
        # Evicted between the two calls.
        cache.set(current, 1, timeout=2 * _WINDOW_S)
    return None


def _seconds_until_free(current: int, previous: int, *, limit: int, elapsed: float) -> float:
    """When the sliding count falls below the limit; at the latest when this window has passed as well."""
    if current >= limit or previous == 0:
        return _WINDOW_S - elapsed
    return max(_WINDOW_S * (1 - (limit - current) / previous) - elapsed, 1.0)


def _caller(request: Request) -> tuple[str, str]:
    actor = request.auth
    if isinstance(actor, Actor):
        return actor.kind, actor.token_prefix
    return "anonymous", request.META.get("REMOTE_ADDR", "")
