"""The span of time that a question about requests is about."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext as _

from registry.errors import InvalidInput

MOST_DAYS: Final = 92
_USUAL: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """From ``since`` on, up to but without ``until``."""

    since: datetime
    until: datetime


def period_of(*, since: datetime | None, until: datetime | None) -> Period:
    """The period between both; without an end it's now, without a beginning the day before the end.

    Raises ``InvalidInput`` if it ends before it begins, or is too long to be looked through at once.
    """
    until = until or timezone.now()
    since = since or until - _USUAL
    if since >= until:
        raise InvalidInput(_("“since” must be before “until”."), field="since")
    if until - since > timedelta(days=MOST_DAYS):
        raise InvalidInput(_("Ask for %(days)d days at most.") % {"days": MOST_DAYS}, field="since")
    return Period(since, until)
