"""Somebody who is signed in, asking the WSGI application itself; no socket, no test client between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.test import Client

from registry.models import Person

if TYPE_CHECKING:
    from collections.abc import Callable


class Browser:
    """Asks as the person with this e-mail address."""

    def __init__(self, email: str) -> None:
        client = Client()
        client.force_login(
            Person.objects.get(email=email), backend="allauth.account.auth_backends.AuthenticationBackend"
        )
        self._cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
        self._application: Callable[..., Any] = get_wsgi_application()
        self._queries = 0

    def get(self, address: str) -> tuple[int, int]:
        """The status of the answer, which is read to its end, and how often the database was asked for it."""
        path, _, query = address.partition("?")
        environ: dict[str, Any] = {
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "HTTP_COOKIE": self._cookie,
            "HTTP_HOST": "127.0.0.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_ACCEPT_LANGUAGE": "en",
        }
        setup_testing_defaults(environ)
        told: list[str] = []
        self._queries = 0
        with connection.execute_wrapper(self._count):
            answer = self._application(environ, lambda status, _headers, _error=None: told.append(status))
            for _part in answer:
                pass
            answer.close()
        return int(told[0].split()[0]), self._queries

    def _count(self, execute: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401  Django's own signature
        self._queries += 1
        return execute(*arguments)
