"""One id per request: the caller's if it is sane, else a new one; echoed back and written to every audit record."""

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_SANE = re.compile(r"^[A-Za-z0-9._-]{1,64}$")


class RequestIdMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _SANE.fullmatch(given) else uuid.uuid4().hex
        request.META["LOREKEEPER_REQUEST_ID"] = request_id
        response = self._get_response(request)
        response["X-Request-Id"] = request_id
        return response
