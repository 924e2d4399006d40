"""What is asked for: every page of the URL configuration, and lists as people use them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from registry.models import Adapter, AuditRecord, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.ui.world import Filled

PREFIX: Final = "ui/"
# allauth's own, about nobody but the reader.
_ACCOUNT: Final = "ui/account/"
_TENANT: Final = "acme"
# What the world doesn't name: the template that is built in, and no link by which a password is set.
_ELSE: Final = {"template": "default", "key": "none"}
_PARAMETER: Final = re.compile(r"<(?:[a-z]+:)?([a-z_]+)>")
_PLACES: Final = 40
_PAGES_BACK: Final = 30
_SEARCHES: Final[dict[str, dict[str, str]]] = {
    "common word": {"text": "pipeline"},
    "rare word": {"text": "xylophone"},
    "no such word": {"text": "qwertyuiop"},
    "common words": {"text": "nightly regular approved candidate"},
    "busy person": {"who": "person-0@example.com"},
    "quiet person": {"who": "person-190@example.com"},
    "person of long ago": {"who": "person-999@example.com"},
    "token": {"token": "tok17"},
    "object": {"object": "version-4711"},
    "adapter": {"object": "acme/adapter-17"},
    "action": {"action": "adapter:version:approve"},
    "actions": {"action": "adapter"},
    "denied": {"outcome": "denied"},
    "allowed": {"outcome": "allowed"},
    "request": {"request_id": "request-4711"},
    "time": {"since": "2020-01-01T00:00", "until": "2100-01-01T00:00"},
    "person and action": {"who": "person-17@example.com", "action": "tenant:release:make"},
    "person, denied, word": {"who": "person-23@example.com", "outcome": "denied", "text": "nightly"},
    "two that never meet": {"who": "person-999@example.com", "object": "version-4711"},
    "two common that never meet": {"outcome": "denied", "action": "adapter"},
    "all at once": {
        "who": "person-5@example.com",
        "outcome": "allowed",
        "action": "adapter:version",
        "text": "pipeline",
        "since": "2020-01-01T00:00",
        "until": "2100-01-01T00:00",
    },
}


def questions(filled: Filled, *, records: int) -> dict[str, list[str]]:
    """Addresses by the name of what is measured with them."""
    found = {route: [address] for route, address in _pages(filled.path)}
    found |= _audit(records)
    found |= _lists(found)
    return {name: addresses for name, addresses in found.items() if addresses}


def _pages(path: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Every page that answers GET. A ``KeyError`` names a parameter that nobody has a value for."""
    known = {**_ELSE, **path}

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            elif route.startswith(PREFIX) and not route.startswith(_ACCOUNT):
                yield route, getattr(pattern.callback, "view_class", None)

    for route, view in walk(get_resolver().url_patterns, ""):
        if hasattr(view, "get"):
            yield route, "/" + _PARAMETER.sub(lambda match: known[match[1]], route)


def _audit(records: int) -> dict[str, list[str]]:
    """The log of the tenant with most records: as it is, narrowed, and far back; and records all over it."""
    log = reverse("audit", kwargs={"tenant": _TENANT})
    newest = AuditRecord.objects.filter(chain=_TENANT).order_by("-seq").values_list("seq", flat=True).first() or records
    places = [1 + newest * part // _PLACES for part in range(_PLACES)]
    found = {f"audit: {name}": [f"{log}?{urlencode(wanted)}"] for name, wanted in _SEARCHES.items()}
    found |= {
        f"audit far back: {name}": [
            f"{log}?{urlencode({**wanted, side: place})}" for place in places for side in ("before", "after")
        ]
        for name, wanted in {"all": {}, **_SEARCHES}.items()
    }
    found["audit: records"] = [
        reverse("audit_record", kwargs={"tenant": _TENANT, "seq": place}) for place in places if place < newest
    ]
    return found


def _lists(pages: dict[str, list[str]]) -> dict[str, list[str]]:
    """Pages about one adapter or version asked for many of them, and lists with words searched for in them."""
    adapters = list(Adapter.objects.filter(tenant__name=_TENANT).values_list("name", flat=True)[:_PLACES])
    versions = Version.objects.filter(adapter__name="tone", engine_name__startswith="bench-").order_by("-created_at")
    names = list(versions.values_list("name", flat=True)[: _PLACES * _PAGES_BACK : _PAGES_BACK])
    found = {}
    for route in list(pages):
        if route.startswith(PREFIX) and route.endswith("<str:version>"):
            found[f"{route} (many)"] = [_filled_in(route, adapter="tone", version=name) for name in names]
        elif route.startswith(PREFIX) and route.endswith("<str:adapter>"):
            found[f"{route} (many)"] = [_filled_in(route, adapter=name) for name in adapters]
        elif route.endswith(("versions", "adapters", "releases")):
            searches = ({"q": "tone"}, {"q": "r4711"}, {"state": "candidate"}, {"q": "nothing-like-it"})
            found[f"{route} (searched)"] = [f"{pages[route][0]}?{urlencode(each)}" for each in searches]
    return found


def _filled_in(route: str, **names: str) -> str:
    known = {"tenant": _TENANT, **names}
    return "/" + _PARAMETER.sub(lambda match: known[match[1]], route)
