"""From where a request came: behind proxies of ours, the address that the outermost of them saw."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponse

Address = IPv4Address | IPv6Address


class ClientAddressMiddleware:
    """Puts the client's address into ``REMOTE_ADDR``, which the audit log and the rate limits go by.

    Where the nearest proxy is trusted, its ``X-Forwarded-Proto`` says whether the client came by https.

    What ``X-Forwarded-For`` says is believed only as far as it was written by a trusted proxy: anybody can send it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._trusted = [ip_network(network) for network in settings.TRUSTED_PROXIES]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if self._trusted:
            if self._trusts(_address(request.META.get("REMOTE_ADDR", ""))):
                _take_scheme(request)
            request.META["REMOTE_ADDR"] = self._client_of(request)
        return self._get_response(request)

    def _client_of(self, request: HttpRequest) -> str:
        """Go from the nearest proxy outwards, as long as each is trusted and names the next one."""
        found: str = request.META.get("REMOTE_ADDR", "")
        outwards = reversed(request.headers.get("X-Forwarded-For", "").split(","))
        for text in outwards:
            if not self._trusts(_address(found)):
                break
            further = _address(text.strip())
            if further is None:
                break
            found = str(further)
        return found

    def _trusts(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _take_scheme(request: HttpRequest) -> None:
    if request.headers.get("X-Forwarded-Proto", "").strip() == "https":
        request.META["wsgi.url_scheme"] = "https"


def _address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
