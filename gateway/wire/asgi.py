"""The small part of ASGI that the gateway uses: its types and two thin wrappers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Self

from gateway.errors import ClientGone

_PATIENCE_S = 60.0

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request whose body has not been read; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    receive: Receive

    @classmethod
    def from_scope(cls, scope: Scope, receive: Receive) -> Self:
        """Take method, decoded path and headers from an ASGI `http` scope."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        return cls(method=scope["method"], path=scope["path"], headers=headers, receive=receive)


class Responder:
    """The answering side of one request; remembers whether anything has been sent."""

    def __init__(self, send: Send, *, request_id: str, patience_s: float = _PATIENCE_S) -> None:
        """Answer through `send`; every answer carries the request id.

        A client that takes no byte for `patience_s` seconds counts as gone (ClientGone): it would keep a connection to
        an engine from everybody else.
        """
        self._through = send
        self._patience_s = patience_s
        self._always: dict[str, str] = {"x-lorekeeper-request-id": request_id}
        self.status: int | None = None

    @property
    def started(self) -> bool:
        """Whether the status line has gone out, after which no other answer is possible."""
        return self.status is not None

    def annotate(self, headers: Mapping[str, str]) -> None:
        """Add headers to whatever answer follows."""
        self._always.update(headers)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and headers."""
        self.status = status
        pairs = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in {**headers, **self._always}.items()
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def chunk(self, data: bytes) -> None:
        """Send bytes of the body; more follow."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self, data: bytes = b"") -> None:
        """Send the last bytes of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a complete answer with its length."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.finish(body)

    async def _send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._through(message)
        except TimeoutError:
            raise ClientGone from None
