"""How bodies are read: nothing is taken in before its size is known to be bearable."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.parsers import DataAndFiles, JSONParser, MultiPartParser

from registry.api.bodies import parse_json
from registry.errors import PayloadTooLarge


class StrictJSONParser(JSONParser):
    """JSON in UTF-8, whatever charset is said. Django bounds its length: ``DATA_UPLOAD_MAX_MEMORY_SIZE``."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:  # noqa: ANN401  any JSON value
        return parse_json(stream.read())


class PushParser(MultiPartParser):
    """Multipart of no more than a small push: its parts lie on this machine's disk while they are looked at."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> "DataAndFiles[Any, Any]":
        length = int((parser_context or {})["request"].META.get("CONTENT_LENGTH", 0))
        limit = settings.SMALL_PUSH_LIMIT + settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if length > limit:
            raise PayloadTooLarge(
                _("One request carries at most %(limit)d bytes. Use the upload in parts: lorekeeper push.")
                % {"limit": settings.SMALL_PUSH_LIMIT}
            )
        return super().parse(stream, media_type, parser_context)
