import ipaddress
import socket
from typing import Any

import pytest

from registry.webhooks.addresses import (
    AddressRefused,
    HostUnknown,
    addresses_of,
    check_url,
    is_public,
    read_url,
)

PRIVATE = [ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("fd00:1::/32")]


def resolving(*addresses: str) -> Any:
    """A resolver for which every name has these addresses."""

    def resolve(_host: str, port: int, **_facts: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    return resolve


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "2002:a00:1::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_what_is_not_the_public_internet_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(AddressRefused):
        addresses_of(read_url("https://receiver.example/"), allowed=(), resolve=resolving(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "172.32.0.1", "168.63.129.17", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"],
)
def test_what_is_the_public_internet_is_taken(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    found = addresses_of(read_url("https://receiver.example/"), allowed=(), resolve=resolving(address))
    assert found == [address]


@pytest.mark.parametrize("address", ["10.20.3.4", "::ffff:10.20.3.4", "64:ff9b::10.20.3.4", "fd00:1::5"])
def test_a_network_that_is_allowed_is_taken_without_encryption_too(address: str) -> None:
    for scheme in ("http", "https"):
        found = addresses_of(read_url(f"{scheme}://receiver.example/"), allowed=PRIVATE, resolve=resolving(address))
        assert found == [address]


def test_beside_a_network_that_is_allowed_others_stay_refused() -> None:
    for address in ("10.21.0.1", "127.0.0.1"):
        with pytest.raises(AddressRefused):
            addresses_of(read_url("https://receiver.example/"), allowed=PRIVATE, resolve=resolving(address))


def test_outside_of_allowed_networks_everything_is_encrypted() -> None:
    with pytest.raises(AddressRefused, match="https"):
        addresses_of(read_url("http://receiver.example/"), allowed=PRIVATE, resolve=resolving("8.8.8.8"))


def test_a_name_that_leads_inside_and_outside_is_refused() -> None:
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        addresses_of(read_url("https://receiver.example/"), allowed=(), resolve=resolving("8.8.8.8", "10.0.0.1"))


def test_a_name_is_resolved_once_and_gives_each_address_once() -> None:
    asked = []

    def resolve(host: str, port: int, **facts: Any) -> Any:
        asked.append((host, port))
        return resolving("8.8.8.8", "8.8.4.4", "8.8.8.8")(host, port)

    assert addresses_of(read_url("https://receiver.example:8443/x"), allowed=(), resolve=resolve) == [
        "8.8.8.8",
        "8.8.4.4",
    ]
    assert asked == [("receiver.example", 8443)]


def test_a_name_without_an_address_is_unknown() -> None:
    def resolve(*_names: Any, **_facts: Any) -> Any:
        raise socket.gaierror("Name or service not known")

    for nothing in (resolve, resolving()):
        with pytest.raises(HostUnknown, match=r"receiver\.example"):
            addresses_of(read_url("https://receiver.example/"), allowed=(), resolve=nothing)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost"])
def test_other_spellings_of_this_machine_are_refused_by_what_they_resolve_to(host: str) -> None:
    with pytest.raises((AddressRefused, HostUnknown)):
        addresses_of(read_url(f"https://{host}/"), allowed=())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "receiver.example/x",
        "ftp://receiver.example/x",
        "file:///etc/passwd",
        "gopher://receiver.example:70/_",
        "https://",
        "https:///x",
        "https://user:word@receiver.example/",
        "https://user@receiver.example/",
        "https://receiver.example/#part",
        "https://receiver.example:0/",
        "https://receiver.example:99999/",
        "https://receiver.example:x/",
        "https://receiver.example/a b",
        "https://receiver.example/a\r\nHost: inside",
        "https://receiver.example/\N{LATIN SMALL LETTER E WITH ACUTE}",
        "https://r\N{LATIN SMALL LETTER E WITH ACUTE}ceiver.example/",
        "https://[::1/",
        "https://a%2eb/",
        f"https://receiver.example/{'a' * 2000}",
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url, allowed=())


@pytest.mark.parametrize("url", ["https://127.0.0.1/x", "https://[::1]:8443/x", "https://[::ffff:10.0.0.1]/"])
def test_an_address_that_is_written_out_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(AddressRefused, match="no public address"):
        check_url(url, allowed=())


def test_without_allowed_networks_an_address_begins_with_https() -> None:
    with pytest.raises(AddressRefused, match="https://"):
        check_url("http://receiver.example/", allowed=())
    assert check_url("http://receiver.example/", allowed=PRIVATE).hostname == "receiver.example"
    with pytest.raises(AddressRefused, match="https://"):
        check_url("http://8.8.8.8/", allowed=PRIVATE)


@pytest.mark.parametrize("url", ["https://receiver.example", "https://receiver.example:8443/x?y=1", "https://8.8.8.8/"])
def test_an_address_of_the_right_form_is_taken(url: str) -> None:
    assert check_url(url, allowed=()).scheme == "https"
