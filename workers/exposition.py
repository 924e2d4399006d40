"""Answering ``/metrics`` on a port of its own, from a thread of the process whose figures they are."""

import ipaddress
from typing import Final
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, disable_created_metrics, start_http_server

_LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = range(1, 65536)

Address = tuple[str, int]


def parse_address(text: str) -> Address:
    """Read `9101`, `10.0.0.5:9101` or `[::1]:9101`; without a host it is this machine alone.

    Raises:
        ValueError: it is none of these; says what it should be.

    """
    host, _colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or _LOOPBACK
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError as error:
        raise ValueError(f"must be a port, or an IP address and a port, not {text!a}") from error
    if number not in _PORTS:
        raise ValueError(f"must have a port from {_PORTS.start} to {_PORTS.stop - 1}, not {text!a}")
    return host, number


def serve(address: Address, registry: CollectorRegistry) -> WSGIServer:
    """Answer every GET there with what the registry collects, until the process ends or `shutdown`.

    Raises:
        OSError: the address can't be listened on.

    """
    # A series for the time at which each other one began: twice as many, for nobody's use.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    host, port = address
    server, _thread = start_http_server(port, host, registry)
    return server
