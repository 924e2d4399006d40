"""Liveness and readiness of the web process."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse


def alive(_request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def ready(_request: HttpRequest) -> JsonResponse:
    """The process can reach its database; 503 while it can't."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return JsonResponse({"status": "database unreachable", "detail": type(error).__name__}, status=503)
    return JsonResponse({"status": "ok"})
