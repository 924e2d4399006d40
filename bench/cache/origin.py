"""A store that is far away: a relay before S3 with a latency and a bandwidth, the same for whoever downloads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Self

from deploy.embedded.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_CHUNK = 64 * 1024


class Origin:
    """Relays TCP connections to `upstream`; the first byte after each request waits, all bytes share one line.

    It relays whole connections, so that signatures made for its address hold behind it too. Runs in a thread.
    """

    def __init__(self, *, latency_s: float, bytes_per_s: float) -> None:
        """Choose the port; nothing listens before `with`."""
        self.port = free_port()
        self.upstream: tuple[str, int] = (LOOPBACK, 0)
        self.sent_bytes = 0
        self._latency_s = latency_s
        self._bytes_per_s = bytes_per_s
        self._line_free_at = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="origin", daemon=True)

    @property
    def url(self) -> str:
        """Where it is to be asked."""
        return f"http://{LOOPBACK}:{self.port}"

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(asyncio.start_server(self._relay, LOOPBACK, self.port), self._loop).result()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Let everything go."""
        asyncio.run_coroutine_threadsafe(_end_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self.upstream)
        asked_at = [0.0]

        async def ask(data: bytes) -> None:
            asked_at[0] = time.monotonic()
            far_writer.write(data)
            await far_writer.drain()

        async def answer(data: bytes) -> None:
            await _sleep_until(asked_at[0] + self._latency_s)
            self.sent_bytes += len(data)
            self._line_free_at = max(self._line_free_at, time.monotonic()) + len(data) / self._bytes_per_s
            await _sleep_until(self._line_free_at)
            writer.write(data)
            await writer.drain()

        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(_pump(reader, ask, far_writer), _pump(far_reader, answer, writer))


async def _pump(
    source: asyncio.StreamReader, give: Callable[[bytes], Awaitable[None]], target: asyncio.StreamWriter
) -> None:
    try:
        while data := await source.read(_CHUNK):
            await give(data)
    finally:
        target.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _sleep_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0:
        await asyncio.sleep(left)
