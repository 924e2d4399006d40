"""Keyset pagination: a page starts after the last row of the page before, whatever was added or removed meanwhile."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.db.models import Field, Model, Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.rest.filters import refuse_unread
from registry.errors import InvalidInput

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
_MAX_CURSOR: Final = 2000

Document = dict[str, Any]
Row = TypeVar("Row", bound=Model)


class PageInput(serializers.Serializer[Any]):
    """The query parameters of every list."""

    cursor = serializers.CharField(
        required=False, max_length=_MAX_CURSOR, help_text="`next` of the page before; without it the first page."
    )
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT, help_text="How many at most."
    )


def page(
    request: Request,
    queryset: QuerySet[Row],
    *,
    document: Callable[[Row], Document],
    ordering: Sequence[str] = ("-created_at", "-pk"),
) -> Response:
    """Answer one page: ``{"results": [document, …], "next": cursor or null}``.

    Args:
        request: its ``cursor`` and ``limit`` say which page.
        queryset: everything that may be seen and that the filters let through; not sliced.
        document: makes the answer of one row.
        ordering: lookups that together are unique, none of them nullable; a leading ``-`` means descending.

    Raises ``InvalidInput`` for a cursor that this list did not give, and for filters that the view has not read.

    """
    refuse_unread(request)
    given = request.query_params
    form = PageInput(data={key: given[key] for key in ("cursor", "limit") if key in given})
    form.is_valid(raise_exception=True)
    limit: int = form.validated_data["limit"]
    signer = Signer(salt=f"lorekeeper.cursor:{request.path}:{','.join(ordering)}")
    cursor: str | None = form.validated_data.get("cursor")
    if cursor is not None:
        queryset = queryset.filter(_after(queryset.model, ordering, _opened(signer, cursor)))
    rows = list(queryset.order_by(*ordering)[: limit + 1])
    more = len(rows) > limit
    shown = rows[:limit]
    following = signer.sign_object([_packed(_value(shown[-1], lookup)) for lookup in ordering]) if more else None
    return Response({"results": [document(row) for row in shown], "next": following})


def whole(documents: Sequence[Document]) -> Response:
    """Answer a short list, all of it, in the shape of a page; ``schema.listed_whole`` describes it."""
    return Response({"results": list(documents), "next": None})


def _opened(signer: Signer, cursor: str) -> list[Any]:
    try:
        values: list[Any] = signer.unsign_object(cursor)
    except BadSignature:
        raise InvalidInput(
            _("This cursor was not given by this list. Leave it out to start at the first page."), field="cursor"
        ) from None
    return values


def _after(model: type[Model], ordering: Sequence[str], values: Sequence[Any]) -> Q:
    """Rows that come later in ``ordering`` than the row with these values."""
    later = Q()
    equal = Q()
    for lookup, packed in zip(ordering, values, strict=True):
        name = lookup.removeprefix("-")
        value = _field(model, name).to_python(packed)
        side = "lt" if lookup.startswith("-") else "gt"
        later |= equal & Q(**{f"{name}__{side}": value})
        equal &= Q(**{name: value})
    return later


def _field(model: type[Model], name: str) -> "Field[Any, Any]":
    *path, last = name.split("__")
    for step in path:
        model = model._meta.get_field(step).related_model  # type: ignore[assignment]  # noqa: SLF001  Django's own way
    meta = model._meta  # noqa: SLF001  Django's own way to ask a model for its fields
    return meta.pk if last == "pk" else meta.get_field(last)  # type: ignore[return-value]


def _value(row: Model, lookup: str) -> Any:  # noqa: ANN401  whatever the field holds
    value: Any = row
    for step in lookup.removeprefix("-").split("__"):
        value = getattr(value, step)
    return value


def _packed(value: Any) -> Any:  # noqa: ANN401  whatever the field holds
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
