"""Every request to web is counted."""

import time
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from config.metrics.process import HTTP_REQUESTS, HTTP_SECONDS

Handler = Callable[[HttpRequest], HttpResponse]

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# A caller can think of any method and any address: those that mean nothing here are counted together.
_UNKNOWN: Final = "other"


class MetricsMiddleware:
    """Counts requests by the pattern of their address, never by the address."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        response = self._get_response(request)
        match = request.resolver_match
        route = _UNKNOWN if match is None else match.route
        method = request.method if request.method in _METHODS else _UNKNOWN
        HTTP_REQUESTS.labels(method, route, f"{response.status_code // 100}xx").inc()
        HTTP_SECONDS.labels(route).observe(time.perf_counter() - begun)
        return response
