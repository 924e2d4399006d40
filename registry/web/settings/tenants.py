"""Tenants and their members."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.errors import NotFound
from registry.permissions import Action
from registry.selectors import list_members, list_tenants
from registry.services.tenants import add_member, create_tenant, remove_member
from registry.states import Role
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from registry.web.paging import page_of
from registry.web.words import word_for


class TenantForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=63,
        help_text=gettext_lazy("Small letters, digits and hyphens. It can't be changed."),
    )
    title = forms.CharField(label=gettext_lazy("Title"), max_length=200, required=False)


class MemberForm(forms.Form):
    email = forms.EmailField(label=gettext_lazy("E-mail"))
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=200, required=False, help_text=gettext_lazy("For somebody new here.")
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=[(role.value, word_for(role)) for role in Role])


class TenantsPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "registry/settings/tenants.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show({"rows": page_of(request, list_tenants(actor=self.actor), ordering=("name",))})


class NewTenantPage(FormPage):
    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}
    form_class = TenantForm
    template_name = "registry/settings/tenant_new.html"

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        tenant = create_tenant(actor=self.actor, **data)
        said = _("%(tenant)s is there. Now add its members.") % {"tenant": tenant}
        return self.leave(reverse("members", kwargs={"tenant": tenant.name}), said)


class MembersPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/settings/members.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        members = list_members(actor=self.actor, tenant=tenant)
        rows = page_of(request, members, ordering=("person__email", "role", "pk"))
        return self.show({"tenant": self.owner, "rows": rows})


class NewMemberPage(FormPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = MemberForm
    template_name = "registry/settings/member_new.html"

    def facts(self) -> Facts:
        return {"tenant": self.owner}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        made = add_member(
            actor=self.actor, tenant=self.owner, email=data["email"], role=Role(data["role"]), name=data["name"]
        )
        said = _("%(person)s is now %(role)s of %(tenant)s.") % {
            "person": made.person.name,
            "role": word_for(made.role),
            "tenant": self.owner,
        }
        return self.leave(reverse("members", kwargs={"tenant": self.owner.name}), said)


class RemoveMemberPage(ConfirmPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}

    def question(self) -> Question:
        email, role = self.kwargs["email"], word_for(self.kwargs["role"])
        return Question(
            heading=_("Take the role “%(role)s” from %(email)s?") % {"role": role, "email": email},
            consequences=(
                _("From this moment on %(email)s can't do in %(tenant)s what only this role allows.")
                % {"email": email, "tenant": self.owner},
                _("Approvals that were given stay in the record; what still waits may need somebody else's."),
            ),
            label=_("Take the role away"),
            back=reverse("members", kwargs={"tenant": self.owner.name}),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        role = role_named(self.kwargs["role"])
        remove_member(actor=self.actor, tenant=self.owner, email=self.kwargs["email"], role=role)
        said = _("%(email)s is not %(role)s any more.") % {
            "email": self.kwargs["email"],
            "role": word_for(self.kwargs["role"]),
        }
        return self.leave(reverse("members", kwargs={"tenant": self.owner.name}), said)


def role_named(name: str) -> Role:
    """Raises ``NotFound``: it comes from an address."""
    try:
        return Role(name)
    except ValueError:
        raise NotFound(_("There is no role named %(name)s.") % {"name": name}, field="role") from None
