"""How much of the fleet each tenant may hold, and holds."""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from cachecontrol.policies import TenantUsage, usage_of_everybody, usage_of_tenant
from cachecontrol.quotas import Resource
from cachecontrol.selectors import list_pool_models
from registry.permissions import Action
from registry.web.page import Page

_TENANTS: Final = 100


@dataclass(frozen=True, slots=True)
class Bar:
    """How much of one resource a tenant has; in slots or bytes.

    Attributes:
        full: what the bar's whole width stands for: its ceiling; without one there is no bar.
        lent: what is guaranteed to it and unused, so that others may use it meanwhile.
        burst: what it has above its guarantee.

    """

    resource: str
    used: int
    floor: int
    ceiling: int | None

    @property
    def full(self) -> int:
        return max(1, self.ceiling or 0)

    @property
    def lent(self) -> int:
        return max(0, self.floor - self.used)

    @property
    def burst(self) -> int:
        return max(0, self.used - self.floor)

    @property
    def share(self) -> float:
        """Of the ceiling, 0 to 1 or more; 0 without one."""
        return self.used / self.ceiling if self.ceiling else 0.0


@dataclass(frozen=True, slots=True)
class QuotaRow:
    usage: TenantUsage
    bars: tuple[Bar, ...]

    @property
    def loads_limit(self) -> float | None:
        return self.usage.policy.loads_per_minute_of(self.usage.tenant)

    @property
    def queue_places(self) -> int:
        return self.usage.policy.queue_places_of(self.usage.tenant)

    @property
    def sla(self) -> str:
        return self.usage.policy.document.sla_name_of(self.usage.tenant)

    @property
    def fullest(self) -> float:
        return max(bar.share for bar in self.bars)


def row_of(usage: TenantUsage) -> QuotaRow:
    bounds = {resource: usage.quota.of(resource) for resource in Resource}
    bars = (Bar(resource.value, usage.used[resource], each.floor, each.ceiling) for resource, each in bounds.items())
    return QuotaRow(usage, tuple(bars))


class QuotaFilters(forms.Form):
    tenant = forms.CharField(label=_("Tenant"), max_length=63, required=False)


class QuotasPage(Page):
    """Leads to the first base model that has nodes."""

    actions = {"get": Action.VIEW_CACHE_POLICY}
    template_name = "cachecontrol/quotas.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        first = list_pool_models(actor=self.actor).first()
        return self.show({"models": []}) if first is None else redirect("pool_quotas", base_model=first.name)


class PoolQuotasPage(Page):
    actions = {"get": Action.VIEW_CACHE_POLICY}
    template_name = "cachecontrol/quotas.html"

    def get(self, request: HttpRequest, base_model: str) -> HttpResponse:
        models = list_pool_models(actor=self.actor)
        filters = QuotaFilters(request.GET)
        text = filters.cleaned_data["tenant"] if filters.is_valid() else ""
        usages = usage_of_everybody(actor=self.actor, base_model=base_model)
        rows = [row_of(usage) for usage in usages if text in usage.tenant]
        rows.sort(key=lambda row: (-row.fullest, row.usage.tenant))
        facts: dict[str, Any] = {"models": models, "base_model": base_model, "filters": filters, "text": text}
        return self.show({**facts, "rows": rows[:_TENANTS], "number": len(rows), "most": _TENANTS})


class TenantQuotasPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "cachecontrol/tenant_quotas.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        rows = [row_of(usage) for usage in usage_of_tenant(tenant=self.owner)]
        return self.show({"owner": self.owner, "rows": rows})
