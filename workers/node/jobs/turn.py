"""The engine's turn: one load at a time, the others wait in the order in which they came, and not too many of them."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

from workers.node.errors import QueueFullError, SupersededError

# How soon a waiting thread notices that its command is void.
_GLANCE_S = 0.5


class Turn:
    """`width` threads at once; at most `queue` more wait."""

    def __init__(self, *, width: int, queue: int) -> None:
        self._width = width
        self._queue = queue
        self._inside = 0
        self._waiting: deque[object] = deque()
        self._changed = Condition()

    @contextmanager
    def take(self, *, is_void: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait for the turn and hold it.

        Raises:
            QueueFullError: too many wait already. SupersededError: `is_void` became true while waiting.

        """
        self._wait(is_void)
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def try_take(self) -> Iterator[bool]:
        """Hold the turn if it is free and nobody waits; whether that worked."""
        with self._changed:
            free = not self._waiting and self._inside == 0
            self._inside += free
        try:
            yield free
        finally:
            if free:
                self._leave()

    def is_taken(self) -> bool:
        """Whether somebody waits for the engine's answer at this moment."""
        with self._changed:
            return self._inside > 0

    def waiting(self) -> int:
        """How many wait."""
        with self._changed:
            return len(self._waiting)

    def _wait(self, is_void: Callable[[], bool]) -> None:
        ticket = object()
        with self._changed:
            if self._inside >= self._width and len(self._waiting) >= self._queue:
                raise QueueFullError(f"{len(self._waiting)} other loads wait for the engine already")
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or self._inside >= self._width:
                    if is_void():
                        raise SupersededError("a newer command for the same name came")
                    self._changed.wait(_GLANCE_S)
                self._inside += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _leave(self) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()
