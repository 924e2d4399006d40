"""Who may move an alias, and which other tenants may call it."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.actors import Actor
from registry.errors import NotFound, PreconditionFailed
from registry.models import Tenant
from registry.permissions import Action
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from releases.models import Alias, AliasProtection
from releases.selectors import get_alias
from releases.served import get_grantee
from releases.services.protection import protect_alias, unprotect_alias
from releases.services.sharing import end_grant, grant_alias


class OfAlias(Page):
    """What pages about one alias know."""

    @cached_property
    def alias(self) -> Alias:
        action = self.actions["post"] or Action.VIEW_TENANT
        return get_alias(actor=self.actor, tenant=self.owner.name, name=self.kwargs["alias"], action=action)

    @property
    def back(self) -> str:
        return reverse("alias", kwargs={"tenant": self.owner.name, "alias": self.kwargs["alias"]})


class SeenForm(forms.Form):
    """``seen`` is the protection that the person saw."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)


class ProtectionForm(SeenForm):
    needs_release = forms.BooleanField(
        label=gettext_lazy("Only releases and rollbacks move it"),
        required=False,
        help_text=gettext_lazy("Nobody moves it by hand."),
    )
    movers = forms.CharField(
        label=gettext_lazy("Only these people may move or release it"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("E-mail addresses, one a line. Empty: everybody whose role allows it."),
    )

    def clean_movers(self) -> list[str]:
        return str(self.cleaned_data["movers"]).split()


def state_of(protection: AliasProtection | None) -> str:
    """Names the state of a protection, so that a form knows whether it is still what was seen."""
    return "" if protection is None else protection.changed_at.isoformat()


def require_seen(protection: AliasProtection | None, seen: str, *, or_none: bool = False) -> None:
    """Raise ``PreconditionFailed`` unless the protection is what the person saw, or gone where that will do."""
    if state_of(protection) != seen and not (or_none and protection is None):
        raise PreconditionFailed(_("Somebody changed the protection meanwhile. Cancel, and look at it again."))


class ProtectAliasPage(OfAlias, FormPage):
    actions = {"get": Action.PROTECT_ALIAS, "post": Action.PROTECT_ALIAS}
    form_class = ProtectionForm
    template_name = "releases/alias_protect.html"

    def facts(self) -> Facts:
        return {"tenant": self.owner, "alias": self.alias, "back": self.back}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        found = getattr(self.alias, "protection", None)
        now = {"needs_release": True} if found is None else {
            "needs_release": found.needs_release, "movers": "\n".join(found.movers)
        }  # fmt: skip
        return ProtectionForm(data, initial={**now, "seen": state_of(found)})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        facts = {name: data[name] for name in ("movers", "needs_release")}
        protect_alias(
            actor=self.actor, alias=self.alias, unchanged=lambda found: require_seen(found, data["seen"]), **facts
        )
        return self.leave(self.back, _("It is protected."))


class UnprotectAliasPage(OfAlias, ConfirmPage):
    actions = {"get": Action.PROTECT_ALIAS, "post": Action.PROTECT_ALIAS}
    form_class = SeenForm

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return SeenForm(data, initial={"seen": state_of(getattr(self.alias, "protection", None))})

    def question(self) -> Question:
        return Question(
            heading=_("Take the protection off %(alias)s?") % {"alias": self.alias},
            consequences=(_("Everybody whose role allows it may move, split and release it, by hand, too."),),
            label=_("Unprotect"),
            back=self.back,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        # Without a protection there is nothing left to do: a second click is quiet.
        unprotect_alias(
            actor=self.actor, alias=self.alias, unchanged=lambda found: require_seen(found, data["seen"], or_none=True)
        )
        return self.leave(self.back, _("It is protected no more."))


class ShareForm(forms.Form):
    tenant = forms.CharField(label=gettext_lazy("Tenant"), max_length=63, help_text=gettext_lazy("Who may call it."))
    name = forms.CharField(
        label=gettext_lazy("By the name"), required=False, max_length=63, help_text=gettext_lazy("Empty: its own.")
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"), required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, data: Any, *, actor: Actor) -> None:  # noqa: ANN401  a QueryDict
        super().__init__(data)
        self._actor = actor

    def clean_tenant(self) -> Tenant:
        try:
            return get_grantee(actor=self._actor, name=self.cleaned_data["tenant"])
        except NotFound as error:
            raise forms.ValidationError(error.message) from error


class ShareAliasPage(OfAlias, FormPage):
    """Sharing is between tenants: for the platform's admins."""

    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = ShareForm
    template_name = "releases/alias_share.html"

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return ShareForm(data, actor=self.actor)

    def facts(self) -> Facts:
        return {"tenant": self.owner, "alias": self.alias, "back": self.back}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        grant = grant_alias(actor=self.actor, alias=self.alias, **data)
        said = _("%(tenant)s may call it as %(name)s.") % {"tenant": grant.tenant, "name": grant.name}
        return self.leave(self.back, said)


class UnshareAliasPage(OfAlias, ConfirmPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}

    def question(self) -> Question:
        names = {"alias": str(self.alias), "tenant": self.kwargs["grantee"]}
        return Question(
            heading=_("Share %(alias)s with %(tenant)s no more?") % names,
            consequences=(_("Requests of %(tenant)s to it are refused from this moment on.") % names,),
            label=_("End the sharing"),
            back=self.back,
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        grantee = get_grantee(actor=self.actor, name=self.kwargs["grantee"])
        end_grant(actor=self.actor, alias=self.alias, tenant=grantee)
        return self.leave(self.back, _("It is shared no more."))
