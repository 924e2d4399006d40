"""JSON into the typed dataclasses of `client.models`, checked field by field.

Unknown fields are ignored, so that a newer server doesn't break an older client. A missing or null field takes the
dataclass's default; without a default, or with a wrong type, the answer is refused with the field's path.
"""

from __future__ import annotations

import dataclasses
import types
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from client.errors import UnexpectedAnswer
from client.i18n import _

T = TypeVar("T")


def decode(kind: type[T], data: object) -> T:
    """Build the dataclass `kind` from a JSON object.

    Raises:
        UnexpectedAnswer: a field is missing or has another type; the message names it.

    """
    return cast("T", _convert(kind, data, kind.__name__))


def decode_list(kind: type[T], data: object) -> tuple[T, ...]:
    """Build a tuple of `kind` from a JSON list, or from an object with the list in `results`."""
    rows = data.get("results") if isinstance(data, dict) else data
    return cast("tuple[T, ...]", _convert(tuple[kind, ...], rows, f"list of {kind.__name__}"))  # type: ignore[valid-type]  # a runtime type


@cache
def _hints(kind: type) -> dict[str, object]:
    return get_type_hints(kind)


def _convert(kind: object, value: object, where: str) -> object:
    """Return `value` as `kind`; `where` is the dotted path for the message."""
    if kind is object or kind is Any:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _convert_object(kind, value, where)
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return _convert_union(get_args(kind), value, where)
    if origin is tuple and isinstance(value, list):
        item = get_args(kind)[0]
        return tuple(_convert(item, row, f"{where}[{index}]") for index, row in enumerate(value))
    if origin is dict and isinstance(value, dict):
        item = get_args(kind)[1]
        return {str(key): _convert(item, row, f"{where}.{key}") for key, row in value.items()}
    return _convert_scalar(kind, value, where)


def _convert_scalar(kind: object, value: object, where: str) -> object:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is kind:  # exact, since a bool is an int for isinstance
        return value
    raise _refused(where, value)


def _convert_union(arms: tuple[object, ...], value: object, where: str) -> object:
    if value is None and type(None) in arms:
        return None
    refused: UnexpectedAnswer | None = None
    for arm in arms:
        try:
            return _convert(arm, value, where)
        except UnexpectedAnswer as error:
            refused = refused or error
    raise refused or _refused(where, value)


def _convert_object(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise _refused(where, value)
    hints = _hints(kind)
    given: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        found = value.get(field.name)
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if found is None and has_default:
            continue
        given[field.name] = _convert(hints[field.name], found, f"{where}.{field.name}")
    return kind(**given)


def _refused(where: str, value: object) -> UnexpectedAnswer:
    message = _(
        "The server's answer has an unexpected {where} (a {kind}); client and server may be of different releases."
    )
    return UnexpectedAnswer(message.format(where=where, kind=type(value).__name__))
