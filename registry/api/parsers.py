"""How bodies are read: nothing is taken in before its size is known to be bearable."""

import io
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from django.conf import settings
from django.http.multipartparser import FIELD, FILE, ChunkIter, LazyStream, MultiPartParserError, Parser
from django.utils.http import parse_header_parameters
from django.utils.translation import gettext as _
from rest_framework.parsers import BaseParser, JSONParser

from registry.api.bodies import parse_json
from registry.errors import InvalidInput, PayloadTooLarge

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK = 256 * 1024


class StrictJSONParser(JSONParser):
    """JSON in UTF-8, whatever charset is said. Django bounds its length: ``DATA_UPLOAD_MAX_MEMORY_SIZE``."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:  # noqa: ANN401  any JSON value
        return parse_json(stream.read())


class PushParser(BaseParser):
    """Multipart, read as it comes: ``request.data`` is a ``Push``, and no file is kept on this machine."""

    media_type = "multipart/form-data"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:  # noqa: ANN401  a Push; the base class knows forms alone
        length = int((parser_context or {})["request"].META.get("CONTENT_LENGTH") or 0)
        if length > settings.MAX_VERSION_BYTES + settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise PayloadTooLarge(_("A version has at most %(limit)d bytes.") % {"limit": settings.MAX_VERSION_BYTES})
        return Push(stream, boundary=_boundary(media_type or ""))


class Push:
    """A multipart push: the part ``manifest`` first, then the files.

    Attributes:
        manifest: its JSON value.

    """

    def __init__(self, stream: IO[bytes], *, boundary: bytes) -> None:
        """Read the manifest. Raises ``InvalidInput`` when it does not come first, is a file, or is not JSON."""
        self._items = iter(Parser(LazyStream(ChunkIter(stream, _CHUNK)), boundary))
        self.manifest = self._read_manifest()

    def files(self) -> Iterator[tuple[str, BinaryIO]]:
        """Path and stream of each file, in the order of the request; a stream ends when the next one is asked for."""
        while (item := self._next()) is not None:
            kind, name, stream = item
            if kind != FILE:
                raise InvalidInput(_("%(path)s comes without a file name.") % {"path": name}, field=name)
            yield name, cast("BinaryIO", io.BufferedReader(_Part(stream), buffer_size=_CHUNK))
            _pass_over(stream)

    def _read_manifest(self) -> Any:  # noqa: ANN401  any JSON value
        item = self._next()
        if item is None or item[:2] != (FIELD, "manifest"):
            raise InvalidInput(
                _("Send the manifest first, as a part “manifest” without a file name."), field="manifest"
            )
        text = item[2].read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
        if len(text) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise PayloadTooLarge(_("The manifest is too large."), field="manifest")
        return parse_json(text, field="manifest")

    def _next(self) -> tuple[str, str, LazyStream] | None:
        """The next part that has a name."""
        try:
            for kind, headers, stream in self._items:
                _value, options = headers.get("content-disposition", ("", {}))
                if name := options.get("name"):
                    return kind, _text(name), stream
                _pass_over(stream)
        except MultiPartParserError as error:
            raise InvalidInput(_("This can't be read as a multipart body: %(reason)s.") % {"reason": error}) from error
        return None


def _boundary(content_type: str) -> bytes:
    _kind, options = parse_header_parameters(content_type)
    boundary = options.get("boundary", "")
    if not boundary or not boundary.isascii():
        raise InvalidInput(_("The multipart body has no boundary."))
    return str(boundary).encode()


def _pass_over(stream: LazyStream) -> None:
    for _chunk in stream:
        pass


def _text(name: bytes | str) -> str:
    return name if isinstance(name, str) else name.decode(errors="replace")


class _Part(io.RawIOBase):
    """One part as a plain stream; Django's own copies what is left of a chunk at every small read."""

    def __init__(self, stream: LazyStream) -> None:
        super().__init__()
        self._chunks = iter(stream)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer).cast("B")
        if not self._left:
            self._left = memoryview(next(self._chunks, b""))
        count = min(len(target), len(self._left))
        target[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
