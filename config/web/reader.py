"""Who reads a page and how: language, colours, time zone; and what every template is told of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from registry.web.navigation import parts_of
from registry.web.reader import reader_of

Handler = Callable[[HttpRequest], HttpResponse]

PAGES: Final = "/ui/"
THEMES: Final = ("system", "light", "dark")
THEME_COOKIE: Final = "lorekeeper_theme"
ZONE_COOKIE: Final = "lorekeeper_zone"


def is_page(request: HttpRequest) -> bool:
    """Whether a person reads the answer: everything else is for programs, and always in English."""
    return request.path == "/" or request.path.startswith(PAGES)


class ReaderMiddleware:
    """Activates the reader's language and time zone for pages, and takes them back after."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_page(request):
            return self._get_response(request)
        with _as_read(translation.get_language_from_request(request), zone_of(request)):
            request.LANGUAGE_CODE = translation.get_language() or settings.LANGUAGE_CODE
            response = self._get_response(request)
            response.headers.setdefault("Content-Language", request.LANGUAGE_CODE)
        patch_vary_headers(response, ("Accept-Language", "Cookie", "HX-Request", "HX-Target"))
        return response


@contextmanager
def _as_read(language: str, zone: ZoneInfo) -> Iterator[None]:
    with translation.override(language), timezone.override(zone):
        yield


def zone_of(request: HttpRequest) -> ZoneInfo:
    """The zone that the reader chose, or that the browser said; else the server's."""
    named = request.COOKIES.get(ZONE_COOKIE, "")
    return ZoneInfo(named if named in zones() else settings.TIME_ZONE)


@cache
def zones() -> frozenset[str]:
    """The names of all zones; Python looks through a thousand files for them."""
    return frozenset(available_timezones())


def theme_of(request: HttpRequest) -> str:
    named = request.COOKIES.get(THEME_COOKIE, "")
    return named if named in THEMES else THEMES[0]


def appearance(request: HttpRequest) -> dict[str, Any]:
    """What the frame of a page needs; asks the database nothing."""
    return {
        "theme": theme_of(request),
        "themes": THEMES,
        "languages": settings.LANGUAGES,
        "zone": timezone.get_current_timezone_name(),
        "zone_is_known": ZONE_COOKIE in request.COOKIES,
    }


def reader_facts(request: HttpRequest) -> dict[str, Any]:
    """Context of every template; of a signed-in person also who it is and where they may go."""
    facts = appearance(request)
    facts["layout"] = "ui/dialog.html" if _is_for_dialog(request) else "ui/page.html"
    if getattr(request, "user", None) is not None and request.user.is_authenticated:
        reader = reader_of(request)
        facts |= {"reader": reader, "actor": reader.actor, "parts": parts_of(reader, request.path)}
    return facts


def _is_for_dialog(request: HttpRequest) -> bool:
    return bool(request.headers.get("HX-Request")) and request.headers.get("HX-Target") == "dialog"
