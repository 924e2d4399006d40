"""Answers over HTTP that are never longer, and never take longer, than honest ones do."""

import time

import httpx

MAX_BYTES = 16 * 2**20
# Compressed, a few bytes could fill the memory.
PLAIN = {"Accept-Encoding": "identity"}


class EndlessAnswerError(httpx.TransportError):
    """The answer goes on beyond its bounds."""


def send_bounded(http: httpx.Client, request: httpx.Request, *, seconds: float) -> httpx.Response:
    """Send the request and return its answer, read whole; of its headers only the content type is kept.

    Raises:
        httpx.HTTPError: no answer, or one of more than `MAX_BYTES` or with bytes still coming after `seconds`.

    """
    until = time.monotonic() + seconds
    response = http.send(request, stream=True)
    try:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_BYTES or time.monotonic() > until:
                raise EndlessAnswerError("the answer does not end", request=request)
    finally:
        response.close()
    headers = {"Content-Type": response.headers.get("Content-Type", "")}
    return httpx.Response(response.status_code, headers=headers, content=bytes(body), request=request)
