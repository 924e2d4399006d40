"""The one mapping from errors to HTTP: problem+json (RFC 9457) for everything the API refuses."""

import logging
import math
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.utils.translation import gettext as _
from rest_framework import exceptions as drf
from rest_framework.response import Response

from cachecontrol import errors as cachecontrol
from registry import errors as registry
from registry.api.denials import tell_denial
from registry.naming import NamingError
from registry.stores import errors as stores
from releases import errors as releases

logger = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"

# The most specific class wins, so order does not matter.
STATUS: Final[dict[type[Exception], int]] = {
    NamingError: 400,
    stores.StoreError: 503,
    stores.StoreDigestMismatch: 400,
    stores.StoreSizeMismatch: 400,
    stores.ObjectMissing: 404,
    stores.TicketError: 403,
    registry.InvalidInput: 400,
    registry.NotAuthenticated: 401,
    registry.PermissionDenied: 403,
    registry.NotFound: 404,
    registry.Conflict: 409,
    registry.PreconditionFailed: 412,
    registry.KeyReused: 422,
    registry.StaleState: 409,
    registry.IllegalTransition: 409,
    registry.PayloadTooLarge: 413,
    registry.SignerUnavailable: 503,
    releases.TargetNotServable: 409,
    releases.RevisionChanged: 409,
    releases.NothingToRollBackTo: 409,
    releases.ReleaseActive: 409,
    releases.WrongReleaseState: 409,
    releases.ApprovalsMissing: 409,
    releases.AliasIsSplit: 409,
    releases.ReleaseNeeded: 409,
    cachecontrol.NodeNotRestartable: 409,
    cachecontrol.NodeRefused: 409,
    cachecontrol.NoCapacity: 409,
    registry.LorekeeperError: 400,
}


def status_of(error: Exception) -> int | None:
    """HTTP status of an error of ours, or None for a foreign one."""
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), None)


def problem_body(status: int, detail: str, *, code: str) -> dict[str, Any]:
    """The members that every problem document has (RFC 9457), and our ``code``."""
    return {"type": "about:blank", "title": code.replace("_", " "), "status": status, "detail": detail, "code": code}


def problem_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler. Foreign exceptions return None, so that Django answers 500 and logs them."""
    status = status_of(error)
    if isinstance(error, registry.LorekeeperError):
        tell_denial(context["request"], context["view"], error)
    if status is not None:
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.warning("%s: %s", type(error).__name__, error)
        response = _problem(
            status, told(error, status), code=getattr(error, "code", "error"), field=getattr(error, "field", None)
        )
        if isinstance(error, registry.RequestRunning):
            response["Retry-After"] = "1"
        return response
    if isinstance(error, drf.ValidationError):
        field, message = _first_failure(error.detail)
        return _problem(400, message, code="invalid_input", field=field or None)
    if isinstance(error, drf.Throttled):
        response = _problem(429, _("Too many requests. Wait as long as Retry-After says."), code="rate_limited")
        response["Retry-After"] = str(math.ceil(getattr(error, "wait", None) or 1))
        return response
    if isinstance(error, drf.APIException):
        return _problem(error.status_code, str(error.detail), code=str(error.get_codes()))
    return _django_problem(error)


def told(error: Exception, status: int) -> str:
    """The sentence for the caller; what a store says of itself can hold addresses inside, and is for the log."""
    if isinstance(error, stores.StoreError) and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _("The artifact store can't do this now. Try again.")
    return str(error)


def _django_problem(error: Exception) -> Response | None:
    if isinstance(error, Http404):
        return _problem(404, _("There is nothing at this address."), code="not_found")
    if isinstance(error, RequestDataTooBig):
        return _problem(413, _("The request body is too large."), code="payload_too_large")
    if isinstance(error, SuspiciousOperation | UnreadablePostError):
        return _problem(400, _("The request can't be read."), code="invalid_input")
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("the database does not answer: %s", error)
        return _problem(503, _("The database does not answer. Try again."), code="database_unavailable")
    return None


def _first_failure(detail: Any, path: str = "") -> tuple[str, str]:  # noqa: ANN401  DRF nests lists and dicts freely
    if isinstance(detail, dict):
        key, value = next(iter(detail.items()))
        name = "" if key == "non_field_errors" else str(key)
        return _first_failure(value, f"{path}.{name}".strip("."))
    if isinstance(detail, list):
        index, value = next((i, item) for i, item in enumerate(detail) if item)
        return _first_failure(value, f"{path}[{index}]" if isinstance(value, dict) else path)
    return path, str(detail)


def _problem(status: int, detail: str, *, code: str, field: str | None = None) -> Response:
    body = problem_body(status, detail, code=code)
    if field:
        body["field"] = field
    response = Response(body, status=status, content_type=MEDIA_TYPE)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="lorekeeper"'
    return response
