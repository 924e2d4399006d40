"""The start page: what needs the reader, and how the fleet is."""

from django.http import HttpRequest, HttpResponse

from cachecontrol.selectors import list_alarms
from registry.permissions import Action
from registry.selectors import list_inbox
from registry.web.allowing import may
from registry.web.page import Facts, Page
from releases.selectors import list_stalled

_SHOWN = 5


class HomePage(Page):
    """Open to whoever is signed in; each part is shown to those who may see what is in it."""

    actions = {"get": None}
    template_name = "ui/home.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        if not may(self.actor, Action.VIEW_PLATFORM):
            return self.show({"is_member": False})
        facts: Facts = {
            "is_member": True,
            "inbox": list(list_inbox(actor=self.actor).order_by("created_at", "pk")[: _SHOWN + 1]),
            "stalled": list(list_stalled(actor=self.actor)[: _SHOWN + 1]),
            "alarms": list(list_alarms(actor=self.actor)[: _SHOWN + 1]),
            "shown": _SHOWN,
        }
        return self.show(facts)
