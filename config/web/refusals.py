"""What a page answers when a service or selector refuses: one place, as ``config.problems`` is for the API."""

import logging
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from redis.exceptions import RedisError
from requests import RequestException

from config.problems import status_of, told
from config.web.reader import appearance, is_page
from registry.errors import LorekeeperError
from registry.web.denials import tell_page_denial

logger = logging.getLogger(__name__)
Handler = Callable[[HttpRequest], HttpResponse]


class RefusalMiddleware:
    """Turns errors of ours that a page did not show in its form into an error page, and tells the audit log."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not is_page(request):
            return None
        if isinstance(error, RedisError):
            return _uncounted(request, error)
        if isinstance(error, RequestException):
            return provider_away(request, error)
        status = status_of(error)
        if status is None:
            return None
        if isinstance(error, LorekeeperError):
            tell_page_denial(request, error)
        return error_page(request, status, told(error, status))


def _uncounted(request: HttpRequest, error: RedisError) -> HttpResponse:
    """While the cache is away nobody tries to sign in: tries that nobody counts could go on for ever."""
    logger.error("the cache does not answer, so nobody can sign in: %s", error)
    return error_page(request, 503, _("Tries to sign in can't be counted now, so nobody can. Try again in a minute."))


def provider_away(request: HttpRequest, error: RequestException) -> HttpResponse:
    """Nothing of ours but single sign-on asks others by the library that raises these."""
    logger.error("the provider of identities does not answer as it should: %s", error)
    return error_page(request, 503, _("Your provider of identities does not answer. Try again in a minute."))


def error_page(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    """A page that says what happened, what to do now, and by which number it can be found in the log."""
    facts = {
        "status": status,
        "heading": _heading(status),
        "detail": detail,
        "advice": _advice(status),
        "request_id": request.META.get("LOREKEEPER_REQUEST_ID", ""),
    }
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # Whatever failed may fail again, so nothing is asked of the database.
        facts |= {**appearance(request), "layout": "ui/entrance.html"}
        return HttpResponse(render_to_string("ui/error.html", facts), status=status)
    return render(request, "ui/error.html", facts, status=status)


def _heading(status: int) -> str:
    headings = {
        400: _("That can't be done like this"),
        403: _("You may not do this"),
        404: _("Nothing is here"),
        409: _("Something else came first"),
        413: _("That is too large"),
        503: _("Not available right now"),
    }
    return headings.get(status, _("Something failed on our side"))


def _advice(status: int) -> str:
    advice = {
        403: _("Ask an administrator of the tenant for the role that is named above, or sign in as somebody else."),
        404: _("Check the address, or look for it from the start page. What you are not a member of is not shown."),
        409: _("Go back, load the page again and look at how things are now."),
        503: _("Wait a moment and load the page again."),
    }
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return advice.get(
            status, _("It has been logged. Tell whoever runs Lorekeeper the number of the request below.")
        )
    return advice.get(status, _("Go back and check what you entered."))
