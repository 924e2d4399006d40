"""A client's connection, the requests on it, and the answering side of one."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from gateway.errors import ClientGone
from gateway.wire.headers import Headers, header_lines

_PATIENCE_S: Final = 60.0


class Connection(Protocol):
    """A client's connection, as the server knows it: what a request's answer is written to.

    An answer is `begin`, any number of `write`, `end`; or `whole`: each of them is one write to the socket. To a client
    that is gone nothing is written. Who answers is cancelled when the connection ends.
    """

    is_gone: bool  # it has ended
    is_slow: bool  # more lies here for the client than it has taken: nothing should be written until `drained`

    def invite(self) -> None:
        """Let the client go on sending the body of the request that is being answered."""

    def begin(self, status: int, lines: bytes, first: bytes) -> None:
        """Write the head of an answer of unknown length, with these header lines, and the `first` of its body."""

    def write(self, data: bytes) -> None:
        """Write bytes of its body; never none."""

    def end(self, last: bytes) -> None:
        """Write the `last` of its body, which may be nothing, and its end."""

    def whole(self, status: int, lines: bytes, body: bytes, *, closes: bool) -> None:
        """Write a complete answer; after one that `closes` the connection ends."""

    async def drained(self) -> None:
        """Wait until the client has taken most of what lies here, or is gone."""

    def drop(self) -> None:
        """End it at once, whatever hasn't been sent."""


class Request:
    """One HTTP request: its head, and of its body what has arrived. Names of headers are in lower case."""

    __slots__ = (
        "_arrival",
        "_parts",
        "closes",
        "connection",
        "headers",
        "is_answered",
        "is_whole",
        "method",
        "path",
        "unread",
    )

    def __init__(self, method: str, path: str, headers: Mapping[str, str], connection: Connection) -> None:
        """Begin with nothing of the body; `path` is decoded. One that `closes` is its client's last."""
        self.closes = False
        self.method = method
        self.path = path
        self.headers = headers
        self.connection = connection
        self.is_whole = self.is_answered = False
        self.unread = 0
        self._parts: list[bytes] = []
        self._arrival: asyncio.Future[None] | None = None

    def add(self, data: bytes) -> None:
        """Bytes of the body have arrived."""
        self._parts.append(data)
        self.unread += len(data)
        if self._arrival is not None:
            self._tell(self._arrival)

    def end(self) -> None:
        """The body has arrived whole."""
        self.is_whole = True
        if self._arrival is not None:
            self._tell(self._arrival)

    def take(self) -> bytes:
        """What has arrived of the body and wasn't taken."""
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.unread = 0
        return data

    async def more(self) -> None:
        """Wait until more of the body has arrived, or its end."""
        if self._parts or self.is_whole:
            return
        self.connection.invite()
        self._arrival = asyncio.get_running_loop().create_future()
        await self._arrival

    def _tell(self, arrival: asyncio.Future[None]) -> None:
        self._arrival = None
        if not arrival.done():
            arrival.set_result(None)


class Responder:
    """The answering side of one request; remembers whether anything has been sent."""

    __slots__ = ("_lines", "_more", "_patience_s", "_told", "connection", "status")

    def __init__(self, connection: Connection, *, request_id: str, patience_s: float = _PATIENCE_S) -> None:
        """Answer on the connection; every answer carries the request id.

        A client that takes no byte for `patience_s` seconds counts as gone (ClientGone) and its connection is dropped:
        it would keep one to an engine from everybody else.
        """
        self.connection = connection
        self._patience_s = patience_s
        self._lines = b"x-lorekeeper-request-id: %b\r\n" % request_id.encode("latin-1")
        self._told = b""
        self._more: dict[bytes, bytes] = {}
        self.status: int | None = None

    @property
    def started(self) -> bool:
        """Whether the status line has gone out, after which no other answer is possible."""
        return self.status is not None

    def annotate(self, headers: Headers) -> None:
        """Add headers, their names in lower case, to whatever answer follows; the last of a name counts."""
        self._more.update(headers)

    def tell(self, lines: bytes) -> None:
        """Say by these header lines what answers, instead of what was said before."""
        self._told = lines

    async def start(self, status: int, headers: Headers, first: bytes = b"") -> None:
        """Send the status line and headers of an answer that comes in parts, and the first of these if it's there.

        The next parts are written to the connection itself; before each of them `drained` is waited for.
        """
        if self.connection.is_slow:
            await self.drained()
        self.status = status
        self.connection.begin(status, self._all(headers), first)

    def finish(self, last: bytes = b"") -> None:
        """Send the end of an answer that came in parts, and the last of these if it's still here."""
        self.connection.end(last)

    async def whole(self, status: int, headers: Headers, body: bytes, *, closes: bool = False) -> None:
        """Send a complete answer with its length; after one that `closes` the connection ends."""
        if self.connection.is_slow:
            await self.drained()
        self.status = status
        self.connection.whole(status, self._all(headers), body, closes=closes)

    async def drained(self) -> None:
        """Wait for a client that is slow; raises ClientGone if it takes nothing for too long."""
        if not self.connection.is_slow:
            return
        try:
            async with asyncio.timeout(self._patience_s):
                await self.connection.drained()
        except TimeoutError:
            self.connection.drop()
            raise ClientGone from None

    def _all(self, headers: Headers) -> bytes:
        lines = header_lines(headers) + self._lines + self._told
        return lines + header_lines(self._more) if self._more else lines
