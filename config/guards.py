"""What holds for every address, whatever view stands behind it."""

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse

from config.error_pages import not_found

Handler = Callable[[HttpRequest], HttpResponse]


class NoStoreMiddleware:
    """No answer is kept by caches on its way: it is one caller's, and some hold a token or a presigned address."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class SoundAddressMiddleware:
    """Names in addresses go into queries; Postgres knows no NUL, so nothing can be at such an address."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\x00" in request.path_info:
            return not_found(request, Http404())
        return self._get_response(request)
