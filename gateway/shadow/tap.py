"""Keeping a copy of an answer while it passes."""

from collections.abc import Callable
from typing import Final

from gateway.upstream.ports import EngineAnswer, media_of

# Of a longer answer there is no comparison: memory is for requests.
MOST_BYTES: Final = 1024 * 1024
_STREAM: Final = b"text/event-stream"


class Tap:
    """An engine's answer that keeps what is read from it, up to a bound."""

    __slots__ = ("_answer", "_kept", "_size", "headers", "status")

    def __init__(self, answer: EngineAnswer) -> None:
        """Read from `answer`."""
        self._answer = answer
        self.status = answer.status
        self.headers = answer.headers
        self._kept: list[bytes] = []
        self._size = 0

    @property
    def is_stream(self) -> bool:
        """Whether the answer came as events."""
        return media_of(self.headers) == _STREAM

    async def read(self) -> bytes:
        """See EngineAnswer.read."""
        return self._keep(await self._answer.read())

    async def forward(self, take: Callable[[bytes], bool]) -> bytes | None:
        """See EngineAnswer.forward."""
        last = await self._answer.forward(lambda data: take(self._keep(data)))
        return self._keep(last) if last else last

    async def whole(self, most: int) -> bytes:
        """See EngineAnswer.whole."""
        return self._keep(await self._answer.whole(most))

    def close(self) -> None:
        """See EngineAnswer.close."""
        self._answer.close()

    def kept(self) -> bytes | None:
        """All that was read; None if it was too much."""
        return b"".join(self._kept) if self._size <= MOST_BYTES else None

    def _keep(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size <= MOST_BYTES:
            self._kept.append(data)
        else:
            self._kept.clear()
        return data
