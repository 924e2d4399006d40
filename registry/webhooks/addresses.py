"""Where deliveries may go: to addresses of the public internet, and to networks that an operator has allowed.

A host is resolved once and what is connected to is the very address that was checked, so that a name which resolves
otherwise a moment later gains nothing. An IPv6 address behind which an IPv4 one stands (mapped, NAT64) counts as that
one; old tunnels that can end anywhere (6to4, Teredo) are refused altogether.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[..., Sequence[tuple[Any, ...]]]

MAX_URL: Final = 2000
_PORTS: Final = {"https": 443, "http": 80}
_HOST: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:")

# What isn't the public internet, written out: what libraries take for it changes from release to release. IANA's
# special-purpose registries, and one public address that a cloud gives its machines for talking to its inside.
_NOT_PUBLIC: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
        ),
    )
)
# All that was given out of IPv6; the rest is local, multicast or nobody's.
_GIVEN_OUT: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOW_32_BITS: Final = 0xFFFF_FFFF


class AddressRefused(Exception):
    """No delivery goes there; the text says why, for people."""


class HostUnknown(Exception):
    """The name does not resolve now."""


def read_url(url: str) -> SplitResult:
    """A receiver's address, if its form is sound. Raises ``AddressRefused``."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise AddressRefused(f"an address is at most {MAX_URL} printable ASCII characters without spaces")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise AddressRefused(f"this is no address: {error}") from error
    if parts.scheme not in _PORTS or not host or not set(host) <= _HOST or port == 0:
        raise AddressRefused("an address is https://HOST/… or https://HOST:PORT/…")
    if "@" in parts.netloc or "#" in url:
        raise AddressRefused("an address has neither a user nor a fragment")
    return parts


def port_of(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def check_url(url: str, *, allowed: Iterable[Network]) -> SplitResult:
    """Whether deliveries could go there, as far as can be told without resolving a name. Raises ``AddressRefused``."""
    parts, networks = read_url(url), tuple(allowed)
    if parts.scheme != "https" and not networks:
        raise AddressRefused("an address begins with https://")
    try:
        literal = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return parts
    _require(literal, is_https=parts.scheme == "https", allowed=networks)
    return parts


def addresses_of(parts: SplitResult, *, allowed: Iterable[Network], resolve: Resolve = socket.getaddrinfo) -> list[str]:
    """The addresses to connect to, in the resolver's order, every one of them checked.

    Raises:
        HostUnknown: the name does not resolve.
        AddressRefused: one of them is where no delivery may go. One is enough: a name that leads inside and outside
            at once is nobody's receiver.

    """
    try:
        found = resolve(parts.hostname, port_of(parts), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostUnknown(f"{parts.hostname} does not resolve: {error}") from error
    networks, texts = tuple(allowed), list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for text in texts:
        _require(ipaddress.ip_address(text), is_https=parts.scheme == "https", allowed=networks)
    if not texts:
        raise HostUnknown(f"{parts.hostname} does not resolve")
    return texts


def is_public(address: Address) -> bool:
    """Whether it is an address of the public internet, or one stands behind it."""
    inner = behind(address)
    if isinstance(inner, ipaddress.IPv6Address) and inner not in _GIVEN_OUT:
        return False
    return not any(inner in network for network in _NOT_PUBLIC if network.version == inner.version)


def behind(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, or else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & _LOW_32_BITS)
    return address.ipv4_mapped or address


def _require(address: Address, *, is_https: bool, allowed: Sequence[Network]) -> None:
    inner = behind(address)
    if any(inner in network for network in allowed if network.version == inner.version):
        return
    if not is_public(address):
        raise AddressRefused(f"{address} is no public address, and no network that is allowed for webhooks has it")
    if not is_https:
        raise AddressRefused("an address outside begins with https://")
