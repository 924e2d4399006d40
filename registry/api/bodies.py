"""Reading request bodies: always a JSON object, always within the declared shape."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import CharField, Field, ListField, ListSerializer, Serializer

from registry.api.inputs import VersionInput
from registry.base_models import strict_json
from registry.errors import InvalidInput
from registry.signing.manifest import SignedFile

_MAX_DEPTH = 32


def read_input(request: Request, shape: type[Serializer[Any]]) -> dict[str, Any]:
    """The validated body of ``request``. Raises DRF's ``ValidationError`` naming the field."""
    return check_input(request.data, shape)


def check_input(data: Any, shape: type[Serializer[Any]]) -> dict[str, Any]:  # noqa: ANN401  any JSON value
    """``data`` as ``shape`` says. Raises DRF's ``ValidationError``, or ``InvalidInput`` for NUL characters."""
    if _has_nul(data):
        raise InvalidInput(_("The body holds a NUL character or is nested too deep."))
    form = shape(data=data)
    form.is_valid(raise_exception=True)
    for name, field in form.fields.items():
        if _is_overlong(field, data.get(name)):
            raise ValidationError({name: [_("This is longer than the API's document allows.")]})
    return dict(form.validated_data)


def parse_json(data: bytes, *, field: str | None = None) -> Any:  # noqa: ANN401  any JSON value
    """The value ``data`` holds, whatever it is. Raises ``InvalidInput`` when two readers could see different things."""
    try:
        return strict_json.parse(data)
    except strict_json.StrictJsonError as error:
        raise InvalidInput(_("This can't be read as JSON: %(reason)s.") % {"reason": error}, field=field) from None


def read_upload(manifest: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON value
    """What ``start_upload`` takes, from a manifest as ``VersionInput`` says. Raises like ``check_input``."""
    body = check_input(manifest, VersionInput)
    files = [SignedFile(path=file["path"], size=file["size"], sha256=file["sha256"]) for file in body["files"]]
    return {**body, "files": files}


def _is_overlong(field: Field[Any, Any, Any, Any] | None, given: Any) -> bool:  # noqa: ANN401  any JSON value
    """Whether a text in it is longer than declared as it came: fields measure it without the blanks at its ends."""
    if isinstance(field, CharField):
        return isinstance(given, str) and field.max_length is not None and len(given) > field.max_length
    if isinstance(field, ListField | ListSerializer):
        return isinstance(given, list) and any(_is_overlong(field.child, each) for each in given)
    if isinstance(field, Serializer):
        return isinstance(given, dict) and any(
            _is_overlong(each, given.get(name)) for name, each in field.fields.items()
        )
    return False


def _has_nul(value: Any, depth: int = 0) -> bool:  # noqa: ANN401  any JSON value
    """Whether Postgres could not keep ``value``: NUL in a string, a lone surrogate, or nesting without end."""
    if depth > _MAX_DEPTH:
        return True
    if isinstance(value, str):
        return "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return any(_has_nul(key, depth + 1) or _has_nul(item, depth + 1) for key, item in value.items())
    if isinstance(value, list):
        return any(_has_nul(item, depth + 1) for item in value)
    return False
