"""Connections to engines: few are opened, none is used for longer than it is good, all cost the same.

Idle lanes lie on a stack per engine, so the one that was used last is used next and the others grow old together. One
timer looks after all of them: it closes what has been idle for too long and ends what an engine is silent about.
"""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import urlsplit

from gateway.errors import EngineUnreachable
from gateway.upstream.allowance import Allowance
from gateway.upstream.lane import Lane
from gateway.wire.outbox import Outbox

_SCHEMES = {"http": 80, "https": 443}
_LONGEST_TICK_S: Final = 0.5
_TICKS: Final = 4
# Requests that go out together: few, since the engine could be at work on the first.
_MOST_TOGETHER: Final = 4
_UNREACHABLE: Final = "The engine can't be reached."


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """At most `connections` calls at once; times in seconds.

    One more call waits `wait_s` for a connection. `silence_s` is the longest time without a byte that is waited for,
    `keepalive_s` how long a connection lies idle, which must be less than engines wait.
    """

    connections: int
    silence_s: float
    connect_s: float = 3.0
    wait_s: float = 5.0
    # uvicorn, and so vLLM, closes an idle connection after 5 seconds.
    keepalive_s: float = 4.0

    @property
    def each(self) -> int:
        """How many of them one engine may have: one that hangs must leave some to the others."""
        return self.connections - self.connections // 4


@dataclass(eq=False, slots=True)
class Origin:
    """Where an engine listens, the idle lanes to it, and how many more it may have."""

    host: str
    port: int
    tls: bool
    authority: str
    allowance: Allowance
    idle: list[Lane] = field(default_factory=list)

    @classmethod
    def parse(cls, url: str, limits: PoolLimits) -> "Origin":
        """Read `http://host:port`; raises EngineUnreachable."""
        try:
            parts = urlsplit(url)
            default, port = _SCHEMES.get(parts.scheme), parts.port
            (parts.hostname or "").encode("idna")  # else the resolver fails, and not as one that finds nothing
        except ValueError:
            default = port = None
            parts = urlsplit("")
        # What would end the header that the authority goes into, or mean another one, is no address.
        if default is None or not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
            message = "The engine's address isn't one of an HTTP server."
            raise EngineUnreachable(message)
        authority = parts.netloc.rpartition("@")[2]
        allowance = Allowance(limits.each, wait_s=limits.wait_s, what="this engine")
        return cls(parts.hostname, port or default, parts.scheme == "https", authority, allowance)


class LanePool:
    """Lends lanes; belongs to one event loop."""

    def __init__(self, limits: PoolLimits) -> None:
        """Nothing is opened before it is asked for."""
        self._limits = limits
        self._origins: dict[str, Origin] = {}
        self._busy: set[Lane] = set()
        self._allowance = Allowance(limits.connections, wait_s=limits.wait_s, what="the engines")
        self._tls: ssl.SSLContext | None = None
        self._outbox: Outbox | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def busy(self) -> int:
        """How many lanes carry an exchange."""
        return len(self._busy)

    @property
    def idle(self) -> int:
        """How many lanes wait for one."""
        return sum(len(origin.idle) for origin in self._origins.values())

    def origin(self, url: str) -> Origin:
        """Where that is; raises EngineUnreachable."""
        origin = self._origins.get(url)
        if origin is None:
            origin = self._origins[url] = Origin.parse(url, self._limits)
        return origin

    def take_idle(self, origin: Origin) -> Lane | None:
        """A lane that was used before, if one is free and a place too."""
        all_, own = self._allowance, origin.allowance
        lane = _usable(origin.idle) if all_.left > 0 and own.left > 0 else None
        if lane is not None:
            all_.left -= 1
            own.left -= 1
            self._busy.add(lane)
        return lane

    async def take(self, origin: Origin, *, fresh: bool = False) -> Lane:
        """A lane, a new one if it must be `fresh`; waits for a place.

        Raises EngineUnreachable, or GatewayBusy when no place became free in time.
        """
        await origin.allowance.take()
        try:
            lane = await self._taken(origin, fresh=fresh)
        except BaseException:
            origin.allowance.give()
            raise
        self._busy.add(lane)
        return lane

    async def _taken(self, origin: Origin, *, fresh: bool) -> Lane:
        await self._allowance.take()
        try:
            lane = None if fresh else _usable(origin.idle)
            return lane or await self._connect(origin)
        except BaseException:
            self._allowance.give()
            raise

    def released(self, lane: Lane, *, reusable: bool) -> None:
        """See LaneOwner."""
        self._busy.discard(lane)
        self._allowance.give()
        if isinstance(lane.origin, Origin):
            lane.origin.allowance.give()
            if reusable and not self._is_closed:
                lane.idle_since = lane.loop.time()
                lane.origin.idle.append(lane)

    def lost(self, lane: Lane) -> None:
        """See LaneOwner."""
        if isinstance(lane.origin, Origin) and lane in lane.origin.idle:
            lane.origin.idle.remove(lane)

    def close(self) -> None:
        """Close all lanes, idle or not."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for lane in tuple(self._busy):
            lane.give_up()
        for origin in self._origins.values():
            idle, origin.idle = origin.idle, []
            for lane in idle:
                lane.close()

    async def _connect(self, origin: Origin) -> Lane:
        loop = asyncio.get_running_loop()
        self._look_after(loop)
        outbox = self._outbox = self._outbox or Outbox(loop, most=_MOST_TOGETHER)
        try:
            async with asyncio.timeout(self._limits.connect_s):
                _transport, protocol = await loop.create_connection(
                    lambda: cast("asyncio.Protocol", Lane(self, origin, loop, outbox)),
                    origin.host,
                    origin.port,
                    ssl=self._tls_of(origin),
                )
                lane = cast("Lane", protocol)
        except (
            OSError,
            UnicodeError,
        ) as error:  # a timeout and a bad certificate are some; names can't all be asked for
            raise EngineUnreachable(_UNREACHABLE) from error
        if not lane.is_usable:
            # Closed as soon as it was opened: what is sent on it would be waited for as if the engine had it.
            lane.close()
            raise EngineUnreachable(_UNREACHABLE)
        return lane

    def _tls_of(self, origin: Origin) -> ssl.SSLContext | None:
        if origin.tls and self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls if origin.tls else None

    def _look_after(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None and not self._is_closed:
            tick = min(_LONGEST_TICK_S, self._limits.silence_s / _TICKS, self._limits.keepalive_s / _TICKS)
            self._timer = loop.call_later(tick, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for lane in tuple(self._busy):
            exchange = lane.exchange
            if exchange is not None and exchange.waiter is not None and now - exchange.since > self._limits.silence_s:
                lane.silence()
        for url, origin in tuple(self._origins.items()):
            _close_before(origin.idle, now - self._limits.keepalive_s)
            if not origin.idle and origin.allowance.is_untouched:
                # Nodes come and go; what is known of their addresses is made again in no time.
                del self._origins[url]
        if self._busy or self._origins:
            self._look_after(loop)


def _usable(idle: list[Lane]) -> Lane | None:
    while idle:
        lane = idle.pop()
        if lane.is_usable:
            return lane
    return None


def _close_before(idle: list[Lane], oldest: float) -> None:
    count = next((number for number, lane in enumerate(idle) if lane.idle_since >= oldest), len(idle))
    expired, idle[:count] = idle[:count], []
    for lane in expired:
        lane.close()
