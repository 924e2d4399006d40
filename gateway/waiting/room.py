"""Requests that wait for something, and the bounded room in which they wait: fair between tenants, cheap for each."""

import asyncio
import time
from collections.abc import Callable

from gateway.errors import GatewayError, TooManyWaiting
from gateway.waiting.gate import Gate

_RETRY_AFTER_S = 5


class Waiter:
    """One waiting request; `done` is settled when it may go on, fails, or has waited long enough.

    `arrived`, `until` (as long as it would wait) and `ends_at` (as long as it may) are times of the monotonic clock.
    """

    __slots__ = ("_gate", "_is_wanted", "_timer", "arrived", "done", "ends_at", "tenant", "until")

    def __init__(self, tenant: str, *, arrived: float, until: float, is_wanted: Callable[[], bool], gate: Gate) -> None:
        """Wait for `tenant` until `until`, and only while `is_wanted` is true; what it raises, the waiting raises.

        Who has waited long enough goes through `gate`: hundreds that came together end together.
        """
        self._gate = gate
        self.tenant, self.arrived, self.until, self.ends_at = tenant, arrived, until, until
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_wanted = is_wanted
        self._timer: asyncio.TimerHandle | None = None

    def end_at(self, at: float, why: Callable[[], GatewayError]) -> None:
        """Fail at that time with what `why` says then, instead of at another time that was set before."""
        self._stop()
        self.ends_at = at
        left = max(0.0, at - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(left, self.let_go, why)

    def let_go(self, why: Callable[[], BaseException | None]) -> None:
        """Let it through the gate: it fails with what `why` says then, or goes on."""
        self._gate.let(lambda: self.settle(why()))

    def look(self) -> None:
        """Go on if it isn't wanted any more."""
        if self.done.done():
            return
        try:
            if not self._is_wanted():
                self.settle()
        except GatewayError as error:
            self.settle(error)

    def settle(self, error: BaseException | None = None) -> None:
        """Go on, or fail; only the first word counts."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)

    def close(self) -> None:
        """Nobody waits for it any more."""
        self._stop()
        if not self.done.cancel() and not self.done.cancelled():
            # Seen: else the event loop would log an error that its request, which left, never took.
            self.done.exception()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class WaitingRoom:
    """A bound on who waits, all together and of each tenant.

    When it's full, the tenant that has the most waiters gives a place to one that has fewer: its newest goes.
    """

    def __init__(self, *, most: int, most_each: int) -> None:
        """Hold at most `most` waiters, of each tenant at most `most_each`; they leave by the `gate`."""
        self.gate = Gate()
        self._most = most
        self._most_each = most_each
        self._tenants: dict[str, dict[Waiter, None]] = {}
        self._size = 0

    def __len__(self) -> int:
        """How many wait."""
        return self._size

    def of(self, tenant: str) -> int:
        """How many of the tenant's wait."""
        return len(self._tenants.get(tenant, ()))

    def enter(self, waiter: Waiter) -> None:
        """Take a place; raises TooManyWaiting where there is none for this tenant."""
        if self.of(waiter.tenant) >= self._most_each:
            raise _full()
        if self._size >= self._most:
            self._make_place(waiter.tenant)
        self._tenants.setdefault(waiter.tenant, {})[waiter] = None
        self._size += 1

    def leave(self, waiter: Waiter) -> None:
        """Give the place back; nothing if it had to go before."""
        waiter.close()
        mine = self._tenants.get(waiter.tenant, {})
        if waiter in mine:
            self._remove(waiter, mine)

    def _make_place(self, tenant: str) -> None:
        largest = max(self._tenants.values(), key=len, default={})
        if len(largest) <= self.of(tenant) + 1:
            raise _full()
        newest = next(reversed(largest))
        self._remove(newest, largest)
        newest.settle(_full())

    def _remove(self, waiter: Waiter, mine: dict[Waiter, None]) -> None:
        del mine[waiter]
        self._size -= 1
        if not mine:
            del self._tenants[waiter.tenant]


def _full() -> TooManyWaiting:
    return TooManyWaiting("Too many requests wait for models to be loaded.", retry_after_s=_RETRY_AFTER_S)
