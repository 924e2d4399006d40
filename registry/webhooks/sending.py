"""One attempt to deliver: a POST to an address that was checked, bounded in time and in what is read of the answer.

Redirects are not followed and no proxy is asked: the receiver is who was checked, and nobody else.
"""

import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import SplitResult

import httpcore

from registry.webhooks.addresses import (
    AddressRefused,
    HostUnknown,
    Network,
    Resolve,
    addresses_of,
    port_of,
    read_url,
)
from registry.webhooks.signature import signed_headers

# From the connection to the end of what is read of the answer.
TIME_LIMIT_S: Final = 10.0
_CONNECT_S: Final = 5.0
EXCERPT_CHARACTERS: Final = 1000
_READ_BYTES: Final = 4096
_USER_AGENT: Final = "Lorekeeper-Webhooks/1"
_SUCCESS: Final = range(200, 300)
_REDIRECTS: Final = range(300, 400)
_LONGEST_NUMBER: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What goes to whom; ``keys`` sign it, the newest first."""

    url: str
    event_id: str
    body: bytes
    keys: Sequence[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attempt.

    ``status`` None: no answer, and ``error`` says why. ``asked``: how long the receiver wants to be left alone.
    """

    status: int | None
    took_ms: int
    excerpt: str = ""
    error: str = ""
    asked: timedelta | None = None

    @property
    def is_delivered(self) -> bool:
        return self.status in _SUCCESS


class Sender:
    """Sends messages; may be used by several threads at once.

    Args:
        allowed: networks that deliveries may go to although they are not public.
        tls: whom it trusts; the system's authorities without it.
        time_limit_s: seconds for one attempt.
        resolve: looks up names.

    """

    def __init__(
        self,
        *,
        allowed: Iterable[Network] = (),
        tls: ssl.SSLContext | None = None,
        time_limit_s: float = TIME_LIMIT_S,
        resolve: Resolve = socket.getaddrinfo,
    ) -> None:
        self._allowed = tuple(allowed)
        self._tls = tls
        self._time_limit_s = time_limit_s
        self._resolve = resolve

    def send(self, message: Message) -> Outcome:
        """Make one attempt. Whatever goes wrong is an outcome, too."""
        began = time.monotonic()
        try:
            parts = read_url(message.url)
            addresses = addresses_of(parts, allowed=self._allowed, resolve=self._resolve)
            answer = self._post(message, parts, addresses)
        except (AddressRefused, HostUnknown) as error:
            return Outcome(status=None, took_ms=_ms_since(began), error=str(error))
        except (httpcore.TimeoutException, TimeoutError):
            error_text = f"no answer within {self._time_limit_s:g} s"
            return Outcome(status=None, took_ms=_ms_since(began), error=error_text)
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            return Outcome(status=None, took_ms=_ms_since(began), error=_reason(error))
        status, excerpt, asked = answer
        is_redirect = status in _REDIRECTS
        return Outcome(
            status=status,
            took_ms=_ms_since(began),
            excerpt=excerpt,
            error="it leads elsewhere, and redirects are not followed" if is_redirect else "",
            asked=asked,
        )

    def _post(
        self, message: Message, parts: SplitResult, addresses: Sequence[str]
    ) -> tuple[int, str, timedelta | None]:
        """Status, the beginning of the body, and how long the receiver wants to be left alone."""
        backend = _CheckedBackend(addresses, until=time.monotonic() + self._time_limit_s)
        headers = {
            "Host": parts.netloc,
            "User-Agent": _USER_AGENT,
            "Content-Type": "application/json",
            "Connection": "close",
            **signed_headers(message.keys, event_id=message.event_id, timestamp=int(time.time()), body=message.body),
        }
        target = httpcore.URL(
            scheme=parts.scheme.encode(),
            host=(parts.hostname or "").encode(),
            port=port_of(parts),
            target=_target_of(parts).encode(),
        )
        pool = httpcore.ConnectionPool(ssl_context=self._tls or _trusted(), max_connections=1, network_backend=backend)
        with pool, pool.stream("POST", target, headers=list(headers.items()), content=message.body) as response:
            return response.status, _excerpt(response.iter_stream()), _retry_after(response.headers)


@cache
def _trusted() -> ssl.SSLContext:
    """The system's authorities; reading them takes longer than all the rest of an attempt."""
    return ssl.create_default_context()


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to the checked addresses, one after the other, whatever the name is."""

    def __init__(self, addresses: Sequence[str], *, until: float) -> None:
        self._addresses = addresses
        self._until = until
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002  the name was resolved before
        port: int,
        timeout: float | None = None,  # noqa: ARG002  all of the attempt has one
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        for left in range(len(self._addresses), 0, -1):
            address = self._addresses[-left]
            seconds = min(_left(self._until), _CONNECT_S)
            try:
                stream = self._inner.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
            else:
                return _BoundedStream(stream, self._until)
        raise httpcore.ConnectError("no address to connect to")


class _BoundedStream(httpcore.NetworkStream):
    """A connection that ends with the time of its attempt, however slowly the other side goes on."""

    def __init__(self, inner: httpcore.NetworkStream, until: float) -> None:
        self._inner = inner
        self._until = until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  as above
        return self._inner.read(max_bytes, _left(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002  as above
        self._inner.write(buffer, _left(self._until))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002  as above
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, _left(self._until))
        return _BoundedStream(inner, self._until)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  as the backend has it
        return self._inner.get_extra_info(info)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time of the attempt is over")
    return left


def _target_of(parts: SplitResult) -> str:
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _excerpt(chunks: Iterable[bytes]) -> str:
    """The beginning of a body as text that a database and a terminal can take; what the status says stands by then."""
    read = b""
    with suppress(httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        for chunk in chunks:
            read += chunk
            if len(read) >= _READ_BYTES:
                break
    text = read[:_READ_BYTES].decode(errors="replace")
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)[:EXCERPT_CHARACTERS]


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> timedelta | None:
    value = next((value.strip() for name, value in headers if name.lower() == b"retry-after"), b"")
    if not value.isdigit() or len(value) > _LONGEST_NUMBER:
        return None
    return timedelta(seconds=int(value))


def _reason(error: Exception) -> str:
    return str(error).strip()[:EXCERPT_CHARACTERS] or type(error).__name__


def _ms_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
