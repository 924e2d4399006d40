"""One page of a long list, with links to its neighbours; however long the list, it costs the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict

from registry.keyset import Keyset

PAGE_ROWS: Final = 50
AFTER: Final = "after"
BEFORE: Final = "before"

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """The rows of one page.

    Attributes:
        rows: what is shown.
        first: the address of the first page; empty on the first page.
        previous: the address of the page before; empty on the first page.
        following: the address of the next page; empty on the last.

    """

    rows: list[Row]
    first: str
    previous: str
    following: str

    def __iter__(self) -> Any:  # noqa: ANN401  an iterator of rows
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def page_of(
    request: HttpRequest,
    queryset: QuerySet[Row],
    *,
    ordering: Sequence[str] = ("-created_at", "-pk"),
    size: int = PAGE_ROWS,
) -> Rows[Row]:
    """The page that the request's ``after`` or ``before`` says, else the first; filters in the address are kept.

    Args:
        request: its address is the list's.
        queryset: everything that may be seen and that the filters let through; not sliced.
        ordering: lookups that together are unique, none of them nullable; a leading ``-`` means descending.
        size: how many rows.

    Raises ``InvalidInput`` for a cursor that this list did not give.

    """
    keys = Keyset(request.path, ordering)
    after, before = request.GET.get(AFTER, ""), request.GET.get(BEFORE, "")
    model = queryset.model
    if before:
        found = list(queryset.filter(keys.before(model, before)).order_by(*keys.backwards)[: size + 1])
        rows, more_before, more_after = found[:size][::-1], len(found) > size, True
    else:
        narrowed = queryset.filter(keys.after(model, after)) if after else queryset
        found = list(narrowed.order_by(*ordering)[: size + 1])
        rows, more_before, more_after = found[:size], bool(after), len(found) > size
    return Rows(
        rows=rows,
        first=_address(request) if more_before else "",
        previous=_address(request, **{BEFORE: keys.cursor_at(rows[0])}) if rows and more_before else "",
        following=_address(request, **{AFTER: keys.cursor_at(rows[-1])}) if rows and more_after else "",
    )


def _address(request: HttpRequest, **place: str) -> str:
    query: QueryDict = request.GET.copy()
    for name in (AFTER, BEFORE):
        query.pop(name, None)
    for name, cursor in place.items():
        query[name] = cursor
    return f"{request.path}?{query.urlencode()}" if query else request.path
