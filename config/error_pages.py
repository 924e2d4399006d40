"""What Django answers before or instead of a view: problem+json to programs, a page to people."""

from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from config.problems import MEDIA_TYPE, problem_body
from config.web.refusals import error_page

_FOR_PROGRAMS: Final = ("/api/", "/store/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    return _answer(request, 400, "invalid_input", _("The request can't be read."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    return _answer(request, 404, "not_found", _("There is nothing at this address."))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001  Django passes it by name
    detail = _(
        "This form was open for too long, or cookies are blocked. Go back, load the page again and send it again."
    )
    return _answer(request, 403, "csrf_failed", detail)


def failed(request: HttpRequest) -> HttpResponse:
    return _answer(request, 500, "internal_error", _("Something failed on our side. It has been logged."))


def _is_browser(request: HttpRequest) -> bool:
    """Browsers ask for HTML by name; programs take anything, or JSON."""
    wants_html = "text/html" in request.META.get("HTTP_ACCEPT", "")
    return wants_html and not request.path.startswith(_FOR_PROGRAMS)


def _answer(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    if not _is_browser(request):
        body = problem_body(status, detail, code=code)
        return JsonResponse(body, status=status, content_type=MEDIA_TYPE)
    return error_page(request, status, detail)
