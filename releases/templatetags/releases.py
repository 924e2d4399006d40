"""Tags for templates about releases."""

from datetime import datetime

from django import template
from django.utils.translation import gettext as _

register = template.Library()

_SECOND_MS = 1000


@register.simple_tag
def took(since: datetime, until: datetime) -> str:
    """``{% took rollback.asked_at rollback.committed_at %}``: milliseconds, or seconds where it was long.

    Gateways have clocks of their own: what ended before the click by theirs ended at once.
    """
    spent = max(0.0, (until - since).total_seconds() * _SECOND_MS)
    if spent < _SECOND_MS:
        return _("%(count)s ms") % {"count": f"{spent:.0f}"}
    return _("%(count)s s") % {"count": f"{spent / _SECOND_MS:.1f}"}


@register.simple_tag
def percent(basis_points: int) -> str:
    """``{% percent split.basis_points %}``: 1,250 is 12.5 %."""
    return f"{basis_points / 100:g} %"
