"""A coroutine that runs as a task does, but begins at once and goes on in the very call that ends its wait.

asyncio's tasks begin and go on in the loop's next round: two rounds, a future and a handle for each wait, which is a
fifth of what a request costs. What asyncio documents for tasks of third parties (`_enter_task` and `_leave_task`) is
kept, so that `asyncio.timeout` and all that waits for futures works in here.
"""

import asyncio
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Signal:
    """A future without a value, for one to wait for: who waits goes on within `fire`.

    Unless another task is running: two at once there can't be, so then it goes on in the loop's next round.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_is_cancelled", "_loop", "is_done")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing has happened yet."""
        self._asyncio_future_blocking = False
        self._loop = loop
        self._callback: Callable[[Any], object] | None = None
        self._is_cancelled = False
        self.is_done = False

    def __await__(self) -> Generator["Signal", None, None]:
        """Wait for it."""
        if not self.is_done:
            self._asyncio_future_blocking = True
            yield self
        self.result()

    def fire(self) -> None:
        """It has happened."""
        if self.is_done:
            return
        self.is_done = True
        callback = self._callback
        if callback is None:
            return
        if asyncio.current_task(self._loop) is None:
            callback(self)
        else:
            self._loop.call_soon(callback, self)

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002  as futures have it
        """See asyncio.Future."""
        if self.is_done:
            return False
        self.is_done = self._is_cancelled = True
        if self._callback is not None:
            # Not at once: asyncio's time limits say only after this call that it was they who cancelled.
            self._loop.call_soon(self._callback, self)
        return True

    def result(self) -> None:
        """See asyncio.Future."""
        if self._is_cancelled:
            raise asyncio.CancelledError

    def add_done_callback(self, callback: Callable[[Any], object], *, context: object = None) -> None:  # noqa: ARG002
        """See asyncio.Future; there is one at most."""
        self._callback = callback

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """See asyncio.Future."""
        return self._loop


class Work:
    """One coroutine on its way; belongs to a callback of the loop, not to another task."""

    __slots__ = ("__weakref__", "_cancels", "_coroutine", "_is_to_cancel", "_loop", "_on_end", "_waits_for")

    def __init__(
        self,
        coroutine: Coroutine[Any, None, None],
        loop: asyncio.AbstractEventLoop,
        on_end: Callable[["Work", BaseException | None], object],
    ) -> None:
        """Call `on_end` with what it raised, if anything, at its end."""
        self._coroutine = coroutine
        self._loop = loop
        self._on_end = on_end
        self._waits_for: Any = None
        self._cancels = 0
        self._is_to_cancel = False

    def begin(self) -> None:
        """Run to the first wait, or the end."""
        self._go_on()

    def cancel(self, msg: object = None) -> bool:
        """See asyncio.Task."""
        self._cancels += 1
        if self._waits_for is None or not self._waits_for.cancel(msg=msg):
            self._is_to_cancel = True
        return True

    def cancelling(self) -> int:
        """See asyncio.Task."""
        return self._cancels

    def uncancel(self) -> int:
        """See asyncio.Task."""
        self._cancels = max(0, self._cancels - 1)
        return self._cancels

    def _go_on(self, _ended: object = None) -> None:
        self._waits_for = None
        error: BaseException | None = None
        _enter_task(self._loop, self)  # type: ignore[arg-type]  # a task by what it does
        try:
            if self._is_to_cancel:
                self._is_to_cancel = False
                waits_for = self._coroutine.throw(asyncio.CancelledError())
            else:
                waits_for = self._coroutine.send(None)
        except StopIteration:
            waits_for = self
        except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001  whoever began it is told
            waits_for, error = self, raised
        finally:
            _leave_task(self._loop, self)  # type: ignore[arg-type]  # as above
        if waits_for is self:
            self._on_end(self, error)
        else:
            self._wait(waits_for)

    def _wait(self, waits_for: Any) -> None:  # noqa: ANN401  whatever is like a future
        if waits_for is None:
            self._loop.call_soon(self._go_on)
            return
        waits_for._asyncio_future_blocking = False  # noqa: SLF001  what awaits a future says so by it
        self._waits_for = waits_for
        waits_for.add_done_callback(self._go_on)
        if self._is_to_cancel and waits_for.cancel():
            self._is_to_cancel = False
