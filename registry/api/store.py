"""The folder store's own addresses. With S3 the bytes never pass through the web process and these answer 404."""

from collections.abc import Iterator
from typing import BinaryIO, cast

from django.conf import settings
from django.http import Http404, StreamingHttpResponse
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.services.stores import folder_store
from registry.stores.folder import FolderStore

_CHUNK = 1024 * 1024
_MAX_LENGTH_DIGITS = 20


class RawParser(BaseParser):
    """Leaves the body unread: it is streamed to the store."""

    media_type = "*/*"


class StoreView(APIView):
    """An address is a capability by itself, so no token is asked for."""

    authentication_classes = ()
    throttle_classes = ()
    parser_classes = (RawParser,)

    def put(self, request: Request, ticket: str) -> Response:
        body = cast("BinaryIO", request._request)  # noqa: SLF001  the unread body: DRF would parse it
        stored = _store().accept_put(ticket, body, content_length=_length(request))
        return Response(status=200 if stored else 412)

    def get(self, request: Request, ticket: str) -> StreamingHttpResponse:
        store = _store()
        found = store.accept_get(ticket)
        response = StreamingHttpResponse(_chunks(store, found.key), content_type="application/octet-stream")
        response["Content-Length"] = str(found.size)
        return response


def _length(request: Request) -> int | None:
    said = request.META.get("CONTENT_LENGTH") or "0"
    return int(said) if said.isascii() and said.isdigit() and len(said) < _MAX_LENGTH_DIGITS else None


def _store() -> FolderStore:
    if settings.STORE["kind"] != "folder":
        raise Http404
    return folder_store()


def _chunks(store: FolderStore, key: str) -> Iterator[bytes]:
    with store.open(key) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk
