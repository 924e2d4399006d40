import httpx
from django.test import Client


class ApiTransport(httpx.BaseTransport):
    """Hands requests of the client to Django."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = Client(raise_request_exception=False).generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=request.headers.get("content-type", "application/json"),
            headers=dict(request.headers),
        )
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)
