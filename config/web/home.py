"""The start page: what needs the reader, and how the fleet is."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol.fleet import count_fleet
from cachecontrol.requests.glance import Glance, Going, glance
from cachecontrol.selectors import list_alarms
from registry.permissions import Action
from registry.selectors import list_inbox
from registry.web.allowing import may
from registry.web.charts import Chart, ChartLine
from registry.web.page import Facts, Page
from releases.selectors import list_stalled

# What needs the reader is shown so far, and that there is more.
_SHOWN: Final = 5
_PERCENT: Final = 100


class HomePage(Page):
    """Open to whoever is signed in; there is something to see for members alone."""

    actions = {"get": None}
    template_name = "ui/home.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        if not may(self.actor, Action.VIEW_PLATFORM):
            return self.show({"is_member": False})
        seen = glance(actor=self.actor, now=timezone.now())
        return self.show({"is_member": True, "shown": _SHOWN, **self._waiting(), **figures(seen)})

    def _waiting(self) -> Facts:
        # Their names are shown, and nothing of what is in them.
        inbox = list_inbox(actor=self.actor).prefetch_related(None).order_by("created_at", "pk")
        return {
            "inbox": list(inbox[: _SHOWN + 1]),
            "stalled": list(list_stalled(actor=self.actor)[: _SHOWN + 1]),
            "alarms": list(list_alarms(actor=self.actor)[: _SHOWN + 1]),
            "fleet": count_fleet(actor=self.actor),
        }


def figures(seen: Glance | None) -> Facts:
    """Of the last hour and the one of yesterday; nothing to show where there were no requests, or too many to count."""
    if seen is None or not (seen.now.requests or seen.before.requests):
        return {"seen": None, "is_slow": seen is None}
    return {
        "seen": seen,
        "hits": (_percent(seen.now), _percent(seen.before)),
        "charts": (
            _chart(seen, _("Hit rate"), "%", _percent),
            _chart(seen, _("Time to the first byte, 95th percentile"), "ms", lambda going: going.ttft_ms),
        ),
    }


def _percent(going: Going) -> float | None:
    return None if going.hit_rate is None else round(going.hit_rate * _PERCENT, 1)


def _chart(seen: Glance, title: str, unit: str, value: Callable[[Going], float | None]) -> Chart:
    return Chart(
        title=title,
        unit=unit,
        lines=(ChartLine(_("Now"), "plain"), ChartLine(_("Yesterday"), "before")),
        rows=tuple((at, (value(now), value(before))) for at, now, before in seen.course),
    )
