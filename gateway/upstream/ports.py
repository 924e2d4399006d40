"""What the gateway needs from a client that talks to engines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol


@dataclass(slots=True)
class EngineCall:
    """One request to an engine, its body complete.

    `engine_url` is `http://host:port` or `https://host:port` without a path, `path` begins with a slash. Names and
    values of `headers` are Latin-1 without line breaks; what frames the message (host, content-length, connection) is
    the client's own and never among them.
    """

    engine_url: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    method: str = "POST"


class EngineAnswer(Protocol):
    """An answer whose head has arrived. Whoever got it closes it, whatever happens."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """Names in lower case; values of a name that came more than once are joined by commas."""

    async def read(self) -> bytes:
        """The next bytes of the body, as many as are there; empty at its end, again and again.

        While nobody reads, the engine is held up after some hundred kilobytes.
        Raises EngineBroken, EngineSilent or EngineUnreadable.
        """

    async def forward(self, take: Callable[[bytes], bool]) -> bytes | None:
        """Give what follows to `take` as it comes; return what came together with the end, which may be nothing.

        None when `take` returned False: what it was given it has taken, and it has enough for now. Raises as `read`
        does, after `take` was given all that came.
        """

    async def whole(self, most: int) -> bytes:
        """What of the body hasn't been read, which may be `most` bytes; raises as `read` does, and EngineUnreadable."""

    def close(self) -> None:
        """Take no more: before the end of the answer that closes the connection, which cancels the engine's work."""


class Upstream(Protocol):
    """Sends calls to engines."""

    async def send(self, call: EngineCall) -> EngineAnswer:
        """Send the call and wait for the first byte of the answer's body, or for its end if it has none.

        A connection that was idle and turns out to have been closed at the other end, with no byte come back, is
        replaced by a new one once: a completion changes nothing at the engine, so that it may be asked for again.
        An engine that hangs is left some of the connections, not all.
        Raises EngineUnreachable (nothing was sent), EngineDropped, EngineSilent, EngineUnreadable or GatewayBusy;
        ValueError for a call that would not be one HTTP request.
        """


def media_of(headers: Mapping[bytes, bytes]) -> bytes:
    """The content type without its parameters, in lower case; empty if there is none."""
    return _without_parameters(headers.get(b"content-type", b""))


@lru_cache(maxsize=256)
def _without_parameters(media: bytes) -> bytes:
    return media.partition(b";")[0].strip().lower()
