from typing import Any, Final

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from registry.api.bodies import check_input
from registry.errors import InvalidInput

_PAGE: Final = frozenset({"cursor", "limit"})
_READ: Final = "LOREKEEPER_FILTERS_READ"


class NoFilters(Serializer[Any]):
    pass


def read_filters(request: Request, shape: type[Serializer[Any]]) -> dict[str, Any]:
    """The query parameters that ``shape`` declares, those that were given, by the ``source`` of their fields.

    With lookups as sources the result is what ``QuerySet.filter`` takes.

    Raises DRF's ``ValidationError``, or ``InvalidInput`` for a parameter that is unknown or comes twice: a filter that
    is silently left out would answer with what was not asked for.
    """
    request.META[_READ] = True
    given = request.query_params
    for name in given:
        if name not in shape().fields and name not in _PAGE:
            raise InvalidInput(_("There is no filter named %(name)s.") % {"name": name}, field=name)
        if len(given.getlist(name)) > 1:
            raise InvalidInput(_("%(name)s comes twice.") % {"name": name}, field=name)
    return check_input({name: given[name] for name in given if name not in _PAGE}, shape)


def refuse_unread(request: Request) -> None:
    """Refuse every filter, unless the view has read some: a list without filters has no unknown ones either."""
    if not request.META.get(_READ):
        read_filters(request, NoFilters)
