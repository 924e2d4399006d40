"""Calls of the REST API: authentication, retries, and problem+json turned into `client.errors`."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from client.errors import ApiError, ServerUnreachable, UnexpectedAnswer, api_error
from client.i18n import _
from client.lines import text_lines
from client.retry import RETRIED_STATUSES, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

USER_AGENT = "lorekeeper-client"
# For `httpx.Client(mounts=…)`: a proxy of the environment is not asked for what runs on this machine.
DIRECT: Mapping[str, None] = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
API_PREFIX = "/api/v1/"
_IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
_CONFLICT = 409
_ERRORS_FROM = 400


def path_of(*segments: str) -> str:
    """Join path segments below the API prefix, each one quoted: a name can't climb out of its place."""
    return API_PREFIX + "/".join(quote(segment, safe="") for segment in segments)


class Transport:
    """One connection pool to one Lorekeeper server with one token.

    Calls that the server treats as idempotent are tried again on connection errors, on 429, 502, 503, 504, and on a 409
    that says when; others never. A POST carries an `Idempotency-Key`, so that trying it again does its work once.
    """

    def __init__(self, *, url: str, token: str, retry: RetryPolicy, http: httpx.Client) -> None:
        """Take the base URL without trailing slash; the pool is closed by `close`."""
        self.url = url
        self.retry = retry
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": USER_AGENT, "Accept": "application/json"}

    def close(self) -> None:
        """Close the connection pool."""
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str | int] | None = None,
        idempotent: bool | None = None,
    ) -> object:
        """Send a request and return the decoded JSON (null for an empty answer).

        Raises:
            ApiError: the server refused.
            ServerUnreachable: no connection after all tries.
            UnexpectedAnswer: the answer isn't JSON.

        """
        request = self._request(method, path, body=body, params=params)
        response = self._send(request, idempotent=method in _IDEMPOTENT_METHODS if idempotent is None else idempotent)
        if response.is_redirect:
            raise _not_json(response)
        if not response.content:
            return None
        return _json(response)

    def location(self, path: str) -> str:
        """Return where a GET is redirected to, without following it: the token must not travel there."""
        response = self._send(self._request("GET", path), idempotent=True)
        if not response.is_redirect or "location" not in response.headers:
            raise _not_json(response)
        return str(response.url.join(response.headers["location"]))

    @contextmanager
    def lines(self, path: str, *, params: Mapping[str, str | int] | None = None) -> Iterator[Iterator[str]]:
        """Open a line-by-line answer (JSON Lines, CSV) of any length."""
        request = self._request("GET", path, params=params)
        response = self._send(request, idempotent=True, stream=True)
        try:
            yield self._guarded_lines(response)
        finally:
            response.close()

    def _guarded_lines(self, response: httpx.Response) -> Iterator[str]:
        try:
            yield from text_lines(response.iter_bytes())
        except httpx.TransportError as error:
            raise ServerUnreachable(public_url(response.url), reason_of(error)) from error
        except httpx.DecodingError as error:
            raise undecodable(response.url) from error

    def _request(
        self, method: str, path: str, *, body: object = None, params: Mapping[str, str | int] | None = None
    ) -> httpx.Request:
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = dict(self._headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        if method == "POST":
            headers["Idempotency-Key"] = uuid.uuid4().hex
        return self._http.build_request(method, self.url + path, params=params, content=content, headers=headers)

    def _send(self, request: httpx.Request, *, idempotent: bool, stream: bool = False) -> httpx.Response:
        """Send with retries; return an answer below 400, or raise what the server said."""
        attempts = self.retry.attempts if idempotent else 1
        for attempt in range(1, attempts + 1):
            last = attempt == attempts
            try:
                response = self._http.send(request, stream=stream, follow_redirects=False)
                if response.status_code >= _ERRORS_FROM:
                    response.read()
            except httpx.TransportError as error:
                if last:
                    raise ServerUnreachable(public_url(request.url), reason_of(error)) from error
                self.retry.pause(attempt)
                continue
            except httpx.DecodingError as error:
                raise undecodable(request.url) from error
            if _may_be_tried_again(response) and not last:
                response.close()
                self.retry.pause(attempt, response)
                continue
            break
        if response.status_code >= _ERRORS_FROM:
            raise problem(response)
        return response


def _may_be_tried_again(response: httpx.Response) -> bool:
    """Say whether the server asks for another try: it is away, busy with us, or with the same request."""
    running = response.status_code == _CONFLICT and "retry-after" in response.headers
    return response.status_code in RETRIED_STATUSES or running


def public_url(url: httpx.URL) -> str:
    """Return scheme, host and path of a URL; queries may carry signatures."""
    return str(url.copy_with(query=None, fragment=None, username=None, password=None))


def reason_of(error: httpx.TransportError) -> str:
    """Say in words why a connection failed."""
    if isinstance(error, httpx.TimeoutException):
        return _("no answer in time")
    return str(error).rstrip(".") or type(error).__name__


def problem(response: httpx.Response) -> ApiError:
    """Turn an error answer into the matching `ApiError`: problem+json, OpenAI's error object, or neither."""
    status = response.status_code
    body = _object_or_empty(response)
    inner = body.get("error")
    found = inner if isinstance(inner, dict) else body
    code = found.get("code") or found.get("type")
    detail = found.get("detail") or found.get("message") or found.get("title")
    field = found.get("field") or found.get("param")
    return api_error(
        status=status,
        code=str(code) if code else f"http_{status}",
        detail=str(detail) if detail else _("The server answered with status {status}.").format(status=status),
        field=str(field) if field else None,
    )


def _object_or_empty(response: httpx.Response) -> dict[str, object]:
    try:
        body = _document(response)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _json(response: httpx.Response) -> object:
    try:
        return _document(response)
    except ValueError as error:
        raise _not_json(response) from error


def _document(response: httpx.Response) -> object:
    """Raise ValueError for what isn't JSON, is nested without an end, or holds halves of characters."""
    try:
        value: object = response.json()
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested without an end") from error
    return value


def undecodable(url: httpx.URL) -> UnexpectedAnswer:
    """An answer whose compression is broken."""
    return UnexpectedAnswer(_("The answer of {url} can't be unpacked.").format(url=public_url(url)))


def _not_json(response: httpx.Response) -> UnexpectedAnswer:
    message = _("{url} didn't answer as the Lorekeeper API does (status {status}); check the address.")
    return UnexpectedAnswer(message.format(url=public_url(response.url), status=response.status_code))
