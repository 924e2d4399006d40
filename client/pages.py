"""Lists of any length: page after page, until there is no next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from client.decoding import decode_list
from client.errors import UnexpectedAnswer
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from client.transport import Transport

T = TypeVar("T")


def iterate(
    kind: type[T], transport: Transport, path: str, *, filters: Mapping[str, str | int] | None = None
) -> Iterator[T]:
    """Yield every row of a list, asking for the next page when it is needed.

    Raises:
        UnexpectedAnswer: the rows aren't of `kind`, or a page leads back to one that was read.

    """
    params: dict[str, str | int] = dict(filters or {})
    read: set[object] = set()
    while True:
        answer = transport.call("GET", path, params=params)
        yield from decode_list(kind, answer)
        cursor = answer.get("next") if isinstance(answer, dict) else None
        if cursor is None:
            return
        if not isinstance(cursor, str | int) or cursor in read:
            raise UnexpectedAnswer(_("The server's list has no end; client and server may be of different releases."))
        read.add(cursor)
        params["cursor"] = cursor


def read_all(
    kind: type[T], transport: Transport, path: str, *, filters: Mapping[str, str | int] | None = None
) -> tuple[T, ...]:
    """Return every row of a list; see `iterate`."""
    return tuple(iterate(kind, transport, path, filters=filters))
