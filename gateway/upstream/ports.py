"""What the gateway needs from a client that talks to engines."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EngineCall:
    """One POST to an engine, its body complete."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """An answer whose first byte has arrived; `chunks` are the raw bytes of the body, in order, to be read once."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    @property
    def media(self) -> str:
        """The content type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Upstream(Protocol):
    """Opens calls to engines. Leaving the context before the end cancels the engine's work."""

    def open(self, call: EngineCall) -> AbstractAsyncContextManager[EngineAnswer]:
        """Send the call and wait for the first byte of the answer's body.

        Raises EngineUnreachable, EngineDropped, EngineSilent or GatewayBusy before that byte; EngineBroken or
        EngineSilent from `chunks` after it.
        """
