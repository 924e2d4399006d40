"""Keyset pagination: a page starts after the last row of the page before, whatever was added or removed meanwhile."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.db.models import Field, Model, Q
from django.utils.translation import gettext as _

from registry.errors import InvalidInput


class Keyset:
    """Places in one list.

    Args:
        name: the list; a cursor is good for this one alone.
        ordering: lookups that together are unique, none of them nullable; a leading ``-`` means descending.

    """

    def __init__(self, name: str, ordering: Sequence[str]) -> None:
        self.ordering = tuple(ordering)
        self._signer = Signer(salt=f"lorekeeper.cursor:{name}:{','.join(ordering)}")

    @property
    def backwards(self) -> tuple[str, ...]:
        """The ordering from the end to the beginning."""
        return tuple(each[1:] if each.startswith("-") else f"-{each}" for each in self.ordering)

    def cursor_at(self, row: Model) -> str:
        """Names the place of ``row``."""
        return self._signer.sign_object([_packed(_value(row, lookup)) for lookup in self.ordering])

    def after(self, model: type[Model], cursor: str) -> Q:
        """Rows that come later than the place. Raises ``InvalidInput`` for a cursor that this list did not give."""
        return _beyond(model, self.ordering, self._opened(cursor))

    def before(self, model: type[Model], cursor: str) -> Q:
        """Rows that come earlier than the place; see ``after``."""
        return _beyond(model, self.backwards, self._opened(cursor))

    def _opened(self, cursor: str) -> list[Any]:
        try:
            values: list[Any] = self._signer.unsign_object(cursor)
        except BadSignature:
            raise InvalidInput(
                _("This cursor was not given by this list. Leave it out to start at the first page."), field="cursor"
            ) from None
        return values


def _beyond(model: type[Model], ordering: Sequence[str], values: Sequence[Any]) -> Q:
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
