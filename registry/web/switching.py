"""Tenants as the reader goes between them."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from registry.selectors import get_tenant
from registry.web.page import Page
from registry.web.reader import TENANT_IN_SESSION


class SwitchTenantPage(Page):
    """Chooses the tenant that pages about one tenant lead to; the tenant itself is asked whether the reader may."""

    actions = {"post": None}

    def post(self, request: HttpRequest) -> HttpResponse:
        tenant = get_tenant(actor=self.actor, name=request.POST.get("tenant", ""))
        request.session[TENANT_IN_SESSION] = tenant.name
        return self.leave(reverse("home"))
