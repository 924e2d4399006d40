"""The reader's own API tokens, and those of a tenant."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.selectors import get_own_token, list_own_tokens
from registry.services.tokens import PERSON_SCOPES, create_own_token, revoke_own_token
from registry.states import Scope
from registry.web.page import ConfirmPage, FormPage, Page, Question
from registry.web.paging import page_of
from registry.web.reader import reader_of
from registry.web.words import word_for

_DAYS: Final = (7, 30, 90, 365)


class TokenForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=100, help_text=gettext_lazy("What it is for, such as “laptop” or “CI”.")
    )
    tenant = forms.ChoiceField(label=gettext_lazy("Tenant"))
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("What it may be used for"),
        choices=[(scope.value, word_for(scope)) for scope in Scope if scope in PERSON_SCOPES],
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ.value],
        help_text=gettext_lazy("Never more than your roles allow."),
    )
    days = forms.TypedChoiceField(
        label=gettext_lazy("Days until it expires"),
        choices=[(days, days) for days in _DAYS],
        coerce=int,
        initial=90,
    )


class TokensPage(Page):
    actions = {"get": None}
    template_name = "registry/tokens.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        rows = page_of(request, list_own_tokens(actor=self.actor))
        return self.show({"rows": rows, "can_make": bool(self.actor.roles)})


class NewTokenPage(FormPage):
    """The text of the token is in the answer to the form and nowhere else: not in the session, not in an address."""

    actions = {"get": None, "post": None}
    form_class = TokenForm
    template_name = "registry/token_new.html"

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        form = super().make_form(data)
        own = [each for each in reader_of(self.request).tenants if each.pk in self.actor.roles]
        form.fields["tenant"].choices = [(each.name, each.name) for each in own]  # type: ignore[attr-defined]  # a ChoiceField
        return form

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        made = create_own_token(
            actor=self.actor,
            tenant=data["tenant"],
            name=data["name"],
            scopes=[Scope(scope) for scope in data["scopes"]],
            expires_at=timezone.now() + timedelta(days=data["days"]),
        )
        return self.show({"made": made.token, "text": made.text})


class RevokeTokenPage(ConfirmPage):
    actions = {"get": None, "post": None}

    def question(self) -> Question:
        token = get_own_token(actor=self.actor, prefix=self.kwargs["prefix"])
        return Question(
            heading=_("Revoke “%(name)s”?") % {"name": token.name},
            consequences=(
                _("Whatever uses the token %(prefix)s is refused from this moment on.") % {"prefix": token},
                _("It can't be taken back; make a new token instead."),
            ),
            label=_("Revoke it"),
            back=reverse("tokens"),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        token = revoke_own_token(actor=self.actor, prefix=self.kwargs["prefix"])
        return self.leave(reverse("tokens"), _("“%(name)s” is revoked.") % {"name": token.name})
