"""A client's connection in memory."""

import asyncio
from dataclasses import dataclass, field

from gateway.wire.headers import Headers


@dataclass(slots=True)
class FakeConnection:
    """See gateway.wire.connection.Connection; keeps what is written, and a test says when it ends."""

    is_gone: bool = False
    is_slow: bool = False
    invited: int = 0
    is_dropped: bool = False
    closes: bool = False
    status: int | None = None
    headers: Headers = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    is_complete: bool = False
    has_drained: asyncio.Event = field(default_factory=asyncio.Event)

    def invite(self) -> None:
        self.invited += 1

    def begin(self, status: int, lines: bytes, first: bytes) -> None:
        assert self.status is None
        assert not lines or lines.endswith(b"\r\n")
        pairs = [line.split(b": ", 1) for line in lines.split(b"\r\n")[:-1]]
        self.status, self.headers = status, {pair[0]: pair[1] for pair in pairs}
        assert len(self.headers) == len(pairs)
        if first:
            self.write(first)

    def write(self, data: bytes) -> None:
        assert data
        assert self.status is not None
        assert not self.is_complete
        self.parts.append(data)

    def end(self, last: bytes) -> None:
        assert self.status is not None
        assert not self.is_complete
        if last:
            self.write(last)
        self.is_complete = True

    def whole(self, status: int, lines: bytes, body: bytes, *, closes: bool) -> None:
        self.begin(status, lines + b"content-length: %d\r\n" % len(body), b"")
        self.closes = closes
        self.parts.append(body)
        self.end(b"")

    async def drained(self) -> None:
        await self.has_drained.wait()
        self.is_slow = False

    def drop(self) -> None:
        self.is_dropped = True
