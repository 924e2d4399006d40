"""The tokens of a tenant: those of its applications, and its members'."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.permissions import Action
from registry.selectors import get_tenant_token, list_tenant_tokens
from registry.services.tokens import create_tenant_token, revoke_token
from registry.states import Scope, TokenKind
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from registry.web.paging import page_of


class ApplicationTokenForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=100, help_text=gettext_lazy("The application that will use it.")
    )
    days = forms.TypedChoiceField(
        label=gettext_lazy("Expires"),
        choices=[("", gettext_lazy("Never")), (30, "30"), (90, "90"), (365, "365")],
        coerce=int,
        required=False,
        empty_value=None,
        help_text=gettext_lazy("In so many days."),
    )


class TenantTokensPage(Page):
    actions = {"get": Action.MANAGE_TENANT}
    template_name = "registry/settings/tokens.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        tokens = list_tenant_tokens(actor=self.actor, tenant=tenant)
        return self.show({"tenant": self.owner, "rows": page_of(request, tokens)})


class NewApplicationTokenPage(FormPage):
    """For an application; people make their own. The text is in the answer to the form and nowhere else."""

    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = ApplicationTokenForm
    template_name = "registry/settings/token_new.html"

    def facts(self) -> Facts:
        return {"tenant": self.owner}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        days = data["days"]
        made = create_tenant_token(
            actor=self.actor,
            tenant=self.owner,
            name=data["name"],
            kind=TokenKind.APPLICATION,
            scopes=[Scope.INFER],
            expires_at=None if days is None else timezone.now() + timedelta(days=days),
        )
        return self.show({"tenant": self.owner, "made": made.token, "text": made.text})


class RevokeTenantTokenPage(ConfirmPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}

    def question(self) -> Question:
        token = get_tenant_token(actor=self.actor, tenant=self.owner.name, prefix=self.kwargs["prefix"])
        return Question(
            heading=_("Revoke “%(name)s”?") % {"name": token.name},
            consequences=(
                _("Whatever uses the token %(prefix)s is refused from this moment on.") % {"prefix": token},
                _("It can't be taken back; make a new token instead."),
            ),
            label=_("Revoke it"),
            back=reverse("tenant_tokens", kwargs={"tenant": self.owner.name}),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        token = revoke_token(actor=self.actor, tenant=self.owner, prefix=self.kwargs["prefix"])
        said = _("“%(name)s” is revoked.") % {"name": token.name}
        return self.leave(reverse("tenant_tokens", kwargs={"tenant": self.owner.name}), said)
