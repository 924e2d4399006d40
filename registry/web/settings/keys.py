"""Keys: those that sign for the registry, and those of a tenant's pipelines."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.permissions import Action
from registry.selectors import list_pipeline_keys, list_signing_keys
from registry.services.pipeline_signatures import register_pipeline_key, revoke_pipeline_key
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from registry.web.paging import page_of


class ReasonForm(forms.Form):
    reason = forms.CharField(label=gettext_lazy("Reason"), max_length=4000, widget=forms.Textarea(attrs={"rows": 3}))


class PipelineKeyForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    public_key = forms.CharField(
        label=gettext_lazy("Public key"),
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=gettext_lazy("PEM: ECDSA P-256. Never the private one."),
    )


class SigningKeysPage(Page):
    """Public keys; made, rotated and revoked where the private ones are, by commands."""

    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "registry/settings/signing_keys.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show({"keys": list(list_signing_keys())})


class PipelineKeysPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/settings/pipeline_keys.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        rows = page_of(request, list_pipeline_keys(actor=self.actor, tenant=tenant))
        return self.show({"tenant": self.owner, "rows": rows})


class NewPipelineKeyPage(FormPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = PipelineKeyForm
    template_name = "registry/settings/pipeline_key_new.html"

    def facts(self) -> Facts:
        return {"tenant": self.owner}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        key = register_pipeline_key(actor=self.actor, tenant=self.owner, **data)
        said = _("What “%(name)s” signs counts from now on.") % {"name": key.name}
        return self.leave(reverse("pipeline_keys", kwargs={"tenant": self.owner.name}), said)


class RevokePipelineKeyPage(ConfirmPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = ReasonForm

    def question(self) -> Question:
        return Question(
            heading=_("Revoke the key %(key)s?") % {"key": self.kwargs["key_id"][:12]},
            consequences=(
                _("No signature of this key counts any more when a version is approved."),
                _("Versions that are approved stay so: revoke those that you doubt."),
            ),
            label=_("Revoke it"),
            back=reverse("pipeline_keys", kwargs={"tenant": self.owner.name}),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        key = revoke_pipeline_key(actor=self.actor, tenant=self.owner, key_id=self.kwargs["key_id"], **data)
        said = _("“%(name)s” is revoked.") % {"name": key.name}
        return self.leave(reverse("pipeline_keys", kwargs={"tenant": self.owner.name}), said)
