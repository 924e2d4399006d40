"""What browsers are told that pages may do: nothing but what comes from here, and nothing written into the page."""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse

Handler = Callable[[HttpRequest], HttpResponse]

_DIRECTIVES: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    # The QR code of an authenticator app is a data: address.
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "object-src": "'none'",
}


class ContentPolicyMiddleware:
    """Sets the Content-Security-Policy of every answer, those of the API included, which need nothing of it."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response
        self._policy = content_policy()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers["Content-Security-Policy"] = self._policy
        response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
        return response


def content_policy() -> str:
    """The policy; forms may lead to the provider of identities, since signing in there begins with one."""
    targets = ["'self'", *_identity_origins()]
    return "; ".join(f"{name} {value}" for name, value in {**_DIRECTIVES, "form-action": " ".join(targets)}.items())


def _identity_origins() -> list[str]:
    oidc: dict[str, Any] = settings.OIDC
    known = [oidc["issuer"], *oidc["origins"]]
    parts = [urlsplit(each) for each in known if each]
    return sorted({f"{part.scheme}://{part.netloc}" for part in parts})
