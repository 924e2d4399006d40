"""How those who waited go on when many may at once: in small groups, between which everybody else has a turn."""

import asyncio
from collections import deque
from collections.abc import Callable

# An answer or a refusal takes a tenth of a millisecond: a group is no longer noticed than another request would be.
_GROUP = 8


class Gate:
    """Calls what it is given soon, in its order, a group in each round of the event loop."""

    __slots__ = ("_exits",)

    def __init__(self) -> None:
        """Begin with nobody at it."""
        self._exits: deque[Callable[[], object]] = deque()

    def let(self, go_on: Callable[[], object]) -> None:
        """Call it in its turn."""
        self._exits.append(go_on)
        if len(self._exits) == 1:
            asyncio.get_running_loop().call_soon(self._open)

    def _open(self) -> None:
        for _ in range(min(_GROUP, len(self._exits))):
            self._exits.popleft()()
        if self._exits:
            asyncio.get_running_loop().call_soon(self._open)
