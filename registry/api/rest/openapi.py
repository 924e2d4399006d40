from functools import cache
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from registry.api.rest.views import ApiView

_RENDERERS = {"json": OpenApiJsonRenderer, "yaml": OpenApiYamlRenderer}


class OpenApiView(ApiView):
    """The OpenAPI document; open to everybody. Made once per process: it depends on the code alone."""

    actions = {"get": None}
    authentication_classes = ()
    kind: ClassVar[str] = "json"

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(rendered(self.kind), content_type=_RENDERERS[self.kind].media_type)


def openapi_document() -> dict[str, Any]:
    """The document as JSON values."""
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


@cache
def rendered(kind: str) -> bytes:
    """The document as text: ``json`` or ``yaml``."""
    text: bytes = _RENDERERS[kind]().render(openapi_document(), renderer_context={})
    return text
