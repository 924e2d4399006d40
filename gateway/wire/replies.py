"""The gateway's own answers: JSON documents, and errors in OpenAI's form with their HTTP status."""

from collections.abc import Mapping
from typing import Final

import orjson

from gateway import errors
from gateway.wire.connection import Responder

JSON_HEADERS: Mapping[bytes, bytes] = {b"content-type": b"application/json"}

_INVALID_REQUEST: Final = "invalid_request_error"
_SERVER_ERROR: Final = "server_error"

# The first class of an error's ancestry that stands here decides.
_STATUS: Mapping[type[errors.GatewayError], tuple[int, str]] = {
    errors.BadRequest: (400, _INVALID_REQUEST),
    errors.NotAuthenticated: (401, _INVALID_REQUEST),
    errors.VersionRevoked: (403, _INVALID_REQUEST),
    errors.ModelNotFound: (404, _INVALID_REQUEST),
    errors.RouteNotFound: (404, _INVALID_REQUEST),
    errors.EndpointNotServed: (404, _INVALID_REQUEST),
    errors.MethodNotAllowed: (405, _INVALID_REQUEST),
    errors.BodyTooSlow: (408, _INVALID_REQUEST),
    errors.BodyTooLarge: (413, _INVALID_REQUEST),
    errors.UnsupportedMedia: (415, _INVALID_REQUEST),
    errors.RateLimited: (429, "rate_limit"),
    errors.TooManyConcurrent: (429, "concurrent_requests"),
    errors.RequestsExceeded: (429, "requests"),
    errors.TokensExceeded: (429, "tokens"),
    errors.GpuTimeExceeded: (429, "gpu_time"),
    errors.FeedbackExceeded: (429, "feedback"),
    errors.EngineSilent: (504, _SERVER_ERROR),
    errors.EngineBusy: (503, _SERVER_ERROR),
    errors.EngineFault: (502, _SERVER_ERROR),
    errors.Unavailable: (503, _SERVER_ERROR),
    errors.GatewayError: (500, _SERVER_ERROR),
}


def status_and_type(error: errors.GatewayError) -> tuple[int, str]:
    """The HTTP status and OpenAI's error type for an error."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def error_document(error: errors.GatewayError) -> dict[str, object]:
    """The error in OpenAI's form."""
    _, kind = status_and_type(error)
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


def error_headers(error: errors.GatewayError) -> dict[bytes, bytes]:
    """The headers that go with an error's answer."""
    headers = dict(JSON_HEADERS)
    if error.retry_after_s is not None:
        headers[b"retry-after"] = b"%d" % error.retry_after_s
    if isinstance(error, errors.NotAuthenticated):
        headers[b"www-authenticate"] = b"Bearer"
    return headers


async def send_error(responder: Responder, error: errors.GatewayError) -> None:
    """Answer with an error."""
    status, _ = status_and_type(error)
    # A body that is too large is read to its end and thrown away instead: closing under it would lose the answer.
    closes = isinstance(error, errors.BodyTooSlow)
    await responder.whole(status, error_headers(error), orjson.dumps(error_document(error)), closes=closes)


async def send_json(responder: Responder, document: Mapping[str, object], *, status: int = 200) -> None:
    """Answer with a JSON document."""
    await responder.whole(status, JSON_HEADERS, orjson.dumps(document))
