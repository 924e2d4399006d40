"""What an address without a view, or a failure, answers: problem+json below /api/, a page for people elsewhere."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    return _answer(request, 404, "not_found", _("There is nothing at this address."))


def failed(request: HttpRequest) -> HttpResponse:
    return _answer(request, 500, "internal_error", _("Something failed on our side. It has been logged."))


def _answer(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        title = code.replace("_", " ")
        body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
        return JsonResponse(body, status=status, content_type="application/problem+json")
    facts = {"status": status, "detail": detail, "request_id": request.META.get("LOREKEEPER_REQUEST_ID", "")}
    return render(request, "error.html", facts, status=status)
