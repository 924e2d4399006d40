from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from config.client_addresses import ClientAddressMiddleware

PROXY = "10.0.0.9"


@pytest.fixture(autouse=True)
def _proxies(settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.0/8", "::1"]


def client_address(remote: str, forwarded: str | None) -> str:
    seen: list[str] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request.META["REMOTE_ADDR"])
        return HttpResponse()

    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    ClientAddressMiddleware(view)(RequestFactory().get("/", REMOTE_ADDR=remote, headers=headers))
    return seen[0]


@pytest.mark.parametrize(
    ("remote", "forwarded", "client"),
    [
        (PROXY, "203.0.113.7", "203.0.113.7"),
        (PROXY, "203.0.113.7, 10.1.1.1", "203.0.113.7"),
        (PROXY, "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        (PROXY, "2001:db8::7", "2001:db8::7"),
        ("::1", "203.0.113.7", "203.0.113.7"),
        (PROXY, None, PROXY),
        (PROXY, "", PROXY),
        (PROXY, "203.0.113.7, nonsense", PROXY),
        ("203.0.113.8", "10.0.0.1", "203.0.113.8"),
        ("", "203.0.113.7", ""),
    ],
)
def test_the_address_is_the_first_one_that_a_trusted_proxy_saw(remote: str, forwarded: str | None, client: str) -> None:
    assert client_address(remote, forwarded) == client


def test_without_trusted_proxies_what_is_forwarded_counts_for_nothing(settings: Any) -> None:
    settings.TRUSTED_PROXIES = []
    assert client_address(PROXY, "203.0.113.7") == PROXY
