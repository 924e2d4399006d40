"""Whether a web server answers."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 2.0
_HTTP_OK = 200


def answers_http(url: str) -> bool:
    """Whether a GET answers 200 within two seconds."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == _HTTP_OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
