"""How the OpenAPI document is made (drf-spectacular). What holds for every operation is added here, once."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from registry.api.rest.pagination import PageInput

PREFIX: Final = "/api/v1/"
_CHANGES: Final = frozenset({"PUT", "PATCH", "DELETE"})
Endpoint = tuple[str, str, str, Callable[..., Any]]

_IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="The same key with the same request gets the same answer for 24 hours, and the work is done once.",
)
_IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="ETags of the state this change is based on; 412 if it is another one by now.",
)
_ETAG: Final = OpenApiParameter(
    "ETag",
    {"type": "string"},
    OpenApiParameter.HEADER,
    required=True,
    response=[200],
    description="Names this state; see If-Match.",
)
_PROBLEM: Final = {
    "type": "object",
    "description": "Why the request was refused (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong and what to do, for people."},
        "code": {"type": "string", "description": "What is wrong, for programs."},
        "field": {"type": "string", "description": "The input the problem is about."},
    },
}
REDIRECT: Final = OpenApiResponse(description="The address in Location is good for a while; send no token there.")


class PageShape(serializers.Serializer[Any]):
    """One page of a list; see ``listed``."""


@cache
def listed(shape: type[serializers.Serializer[Any]]) -> type[PageShape]:
    """The shape of one page of ``shape``: ``{"results": […], "next": cursor or null}``."""
    return type(f"{shape.__name__}Page", (PageShape,), _page_fields(shape))


@cache
def listed_whole(shape: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The same shape for a list that is always answered whole: it takes no cursor."""
    return type(f"{shape.__name__}List", (serializers.Serializer,), _page_fields(shape))


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "registry.api.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, _auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


class OperationSchema(AutoSchema):
    """What follows from the kind of an operation, so that no view has to say it."""

    def get_override_parameters(self) -> list[Any]:
        parameters: list[Any] = []
        if self.method == "POST":
            parameters.append(_IDEMPOTENCY_KEY)
        if self.method in _CHANGES and hasattr(self.view, "get"):
            parameters.append(_IF_MATCH)
        if self.method == "GET" and any(hasattr(self.view, change.lower()) for change in _CHANGES):
            parameters.append(_ETAG)
        if _answers_page(self.get_response_serializers()):
            parameters.append(PageInput)
        return parameters

    def get_auth(self) -> list[dict[str, Any]]:
        """Views are open or ask for a token; DRF's permission classes decide nothing here."""
        return [auth for auth in super().get_auth() if auth]

    def get_tags(self) -> list[str]:
        parts = [part for part in self.path.removeprefix(PREFIX).split("/") if not part.startswith("{")]
        inside_tenant = parts[0] == "tenants" and len(parts) > 1
        return [parts[1] if inside_tenant else parts[0]]

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  spectacular's own signature
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        refuses_blank = isinstance(field, serializers.CharField) and not field.allow_blank
        if direction == "request" and refuses_blank and isinstance(schema, dict):
            schema.setdefault("minLength", field.min_length or 1)
        return schema


def only_rest(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Preprocessing hook: what lies outside the REST API has documents of its own."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith(PREFIX)]


def add_problems(result: dict[str, Any], **_facts: object) -> dict[str, Any]:
    """Postprocessing hook: every operation may answer a problem document instead."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = _PROBLEM
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = {"description": "Refused or failed.", "content": problem}
    return result


def _page_fields(shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    return {
        "results": shape(many=True),
        "next": serializers.CharField(allow_null=True, help_text="Cursor of the next page; null at the end."),
    }


def _answers_page(responses: object) -> bool:
    shapes = responses.values() if isinstance(responses, Mapping) else [responses]
    return any(isinstance(shape, type) and issubclass(shape, PageShape) for shape in shapes)
