"""The reader's own account: what there is to it, and a link by which somebody sets a password."""

from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import get_adapter as account_adapter
from allauth.mfa.adapter import get_adapter as mfa_adapter
from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import Person
from registry.services.people.accounts import person_of_link, set_password_by_link
from registry.web.page import Facts, FormPage, Page


class AccountPage(Page):
    actions = {"get": None}
    template_name = "account/index.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        person = Person.objects.get(email=self.actor.id)
        return self.show(
            {
                "has_password": person.has_usable_password(),
                "has_second_factor": mfa_adapter().is_mfa_enabled(person),
            }
        )


class NewPasswordForm(forms.Form):
    password = forms.CharField(
        label=gettext_lazy("New password"),
        help_text=gettext_lazy("At least 12 characters, not one that many people use."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
    )
    again = forms.CharField(
        label=gettext_lazy("The same again"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("password") and data.get("again") and data["password"] != data["again"]:
            self.add_error("again", _("The two are not the same."))
        return data


class PasswordLinkPage(FormPage):
    """Open to whoever has the link, which is the secret."""

    is_public = True
    form_class = NewPasswordForm
    template_name = "account/password_by_link.html"

    def facts(self) -> Facts:
        return {"person": person_of_link(self.kwargs["key"])}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        set_password_by_link(
            key=self.kwargs["key"],
            password=data["password"],
            request_id=self.request.META.get("LOREKEEPER_REQUEST_ID", ""),
            source=account_adapter().get_client_ip(self.request),
        )
        return self.leave(reverse("account_login"), _("The password is set. Sign in with it."))
