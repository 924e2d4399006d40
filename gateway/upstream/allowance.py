"""So many at once, and as many more who wait a while for one of them to end."""

import asyncio
from collections import deque
from typing import Final

from gateway.errors import GatewayBusy

_RETRY_AFTER_S: Final = 2


class Allowance:
    """Places for calls; belongs to one event loop. `left` is how many are free."""

    __slots__ = ("_most", "_wait_s", "_waiting", "_what", "left")

    def __init__(self, most: int, *, wait_s: float, what: str) -> None:
        """Grant `most` places; who finds none waits `wait_s` seconds. `what` is said to be in use after that."""
        self.left = most
        self._most = most
        self._wait_s = wait_s
        self._what = what
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has a place or waits for one."""
        return self.left == self._most

    async def take(self) -> None:
        """Take a place; end it with `give`. Raises GatewayBusy when there is none in time, or too many wait."""
        if self.left > 0:
            self.left -= 1
            return
        if len(self._waiting) >= self._most:
            raise self._busy()
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self._wait_s):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self.give()
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            if isinstance(error, TimeoutError):
                raise self._busy() from None
            raise

    def give(self) -> None:
        """Give a place back: to who has waited longest, if anybody does."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.left += 1

    def _busy(self) -> GatewayBusy:
        return GatewayBusy(f"All connections to {self._what} are in use.", retry_after_s=_RETRY_AFTER_S)
