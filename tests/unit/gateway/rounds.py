"""A loop of which only the rounds are there."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import asyncio


class Rounds:
    """Its rounds end when one says so; `loop` is what belongs to it."""

    def __init__(self) -> None:
        self._next: list[Callable[[], None]] = []
        self.loop = cast("asyncio.AbstractEventLoop", self)

    def call_soon(self, call: Callable[[], None]) -> None:
        """See asyncio."""
        self._next.append(call)

    def end_round(self) -> None:
        """Call what was to be called soon."""
        calls, self._next = self._next, []
        for call in calls:
            call()
