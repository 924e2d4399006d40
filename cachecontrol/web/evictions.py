"""Every eviction, the newest first, with why."""

from typing import Any, Final

from django import forms
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from cachecontrol.explanations import list_evictions
from cachecontrol.states import EvictionReason, Tier
from cachecontrol.web.seen import told_to
from cachecontrol.web.words import REASONS, WORDS
from registry.permissions import Action
from registry.web.page import Page
from registry.web.paging import page_of

_MAX_NAME: Final = 63


class EvictionFilters(forms.Form):
    node = forms.CharField(label=_("Node"), max_length=_MAX_NAME, required=False)
    tenant = forms.CharField(label=_("Tenant"), max_length=_MAX_NAME, required=False)
    adapter = forms.CharField(label=_("Adapter"), max_length=_MAX_NAME, required=False)
    tier = forms.ChoiceField(
        label=_("Left"), required=False, choices=[("", _("any tier")), *((tier.value, WORDS[tier]) for tier in Tier)]
    )
    reason = forms.ChoiceField(
        label=_("Why"),
        required=False,
        choices=[("", _("any reason")), *((reason.value, REASONS[reason]) for reason in EvictionReason)],
    )


_LOOKUPS: Final = {
    "node": "node__name",
    "tenant": "version__adapter__tenant__name",
    "adapter": "version__adapter__name",
    "tier": "tier",
    "reason": "reason",
}


class EvictionsPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "cachecontrol/evictions.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        filters = EvictionFilters(request.GET)
        asked: dict[str, Any] = filters.cleaned_data if filters.is_valid() else {}
        wanted = Q(**{_LOOKUPS[name]: value for name, value in asked.items() if value})
        rows = page_of(request, list_evictions(actor=self.actor).filter(wanted), ordering=("-at", "-pk"))
        seen = [told_to(self.actor, each) for each in rows]
        return self.show({"rows": rows, "evictions": seen, "filters": filters, "is_filtered": bool(wanted)})
