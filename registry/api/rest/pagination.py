"""Pages of lists, by ``registry.keyset``."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.rest.filters import refuse_unread
from registry.keyset import Keyset

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
    """Answer one page, whose documents are made one by one by ``document``; else as ``page_at_once``."""
    return page_at_once(request, queryset, documents=lambda rows: [document(row) for row in rows], ordering=ordering)


def page_at_once(
    request: Request,
    queryset: QuerySet[Row],
    *,
    documents: Callable[[Sequence[Row]], list[Document]],
    ordering: Sequence[str] = ("-created_at", "-pk"),
) -> Response:
    """Answer one page: ``{"results": [document, …], "next": cursor or null}``.

    Args:
        request: its ``cursor`` and ``limit`` say which page.
        queryset: everything that may be seen and that the filters let through; not sliced.
        documents: makes the answers of the page's rows, for what is to be asked once for all of them.
        ordering: lookups that together are unique, none of them nullable; a leading ``-`` means descending.

    Raises ``InvalidInput`` for a cursor that this list did not give, and for filters that the view has not read.

    """
    refuse_unread(request)
    given = request.query_params
    form = PageInput(data={key: given[key] for key in ("cursor", "limit") if key in given})
    form.is_valid(raise_exception=True)
    limit: int = form.validated_data["limit"]
    keys = Keyset(request.path, ordering)
    cursor: str | None = form.validated_data.get("cursor")
    if cursor is not None:
        queryset = queryset.filter(keys.after(queryset.model, cursor))
    rows = list(queryset.order_by(*ordering)[: limit + 1])
    more = len(rows) > limit
    shown = rows[:limit]
    following = keys.cursor_at(shown[-1]) if more else None
    return Response({"results": documents(shown), "next": following})


def whole(documents: Sequence[Document]) -> Response:
    """Answer a short list, all of it, in the shape of a page; ``schema.listed_whole`` describes it."""
    return Response({"results": list(documents), "next": None})
