"""Optimistic concurrency (RFC 9110): GET says an ETag, a change may name the one it is based on."""

import hashlib
import re
from typing import Any, Final

from django.utils.translation import gettext as _
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.errors import PreconditionFailed

_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')

Document = dict[str, Any]


def etag_of(document: Document) -> str:
    """The strong ETag of a document: it changes whenever anything shown changes."""
    return f'"{hashlib.sha256(JSONRenderer().render(document)).hexdigest()[:32]}"'


def answer(document: Document, request: Request, *, status: int = 200) -> Response:
    """The document with its ETag; 304 without it for a GET whose ``If-None-Match`` has the ETag already."""
    tag = etag_of(document)
    if request.method in {"GET", "HEAD"} and _names(request.headers.get("If-None-Match", ""), tag, weak=True):
        return Response(status=304, headers={"ETag": tag})
    return Response(document, status=status, headers={"ETag": tag})


def names_state(request: Request) -> bool:
    """Whether the caller says which state its change is based on."""
    return "If-Match" in request.headers or "If-None-Match" in request.headers


def require_match(request: Request, document: Document | None) -> None:
    """Raise ``PreconditionFailed`` if the caller named another state than this one (None: there is nothing yet).

    ``If-Match: "tag", …`` or ``*`` asks for what is there; ``If-None-Match: *`` asks that nothing is there. Call it
    with the row locked, in the transaction of the change, or hand the service what it has to find unchanged.
    """
    tag = None if document is None else etag_of(document)
    wanted = request.headers.get("If-Match")
    if wanted is not None and (tag is None or not _names(wanted, tag)):
        raise PreconditionFailed(
            _("This is not what If-Match names: it was changed meanwhile. Read it again and repeat your change."),
            field="If-Match",
        )
    if tag is not None and request.headers.get("If-None-Match", "").strip() == "*":
        raise PreconditionFailed(
            _("There is something already, and If-None-Match asks for nothing."), field="If-None-Match"
        )


def _names(header: str, tag: str, *, weak: bool = False) -> bool:
    """Whether a list of ETags names ``tag``; one that a proxy on the way made weak is good for reading alone."""
    named = _TAG.findall(header)
    return header.strip() == "*" or tag in (one.removeprefix("W/") if weak else one for one in named)
