"""One adapter with its versions, and a new one."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.catalogue.search import list_bases
from registry.catalogue.versions import (
    list_aliases_of,
)
from registry.permissions import Action
from registry.selectors import get_adapter, get_tenant, list_versions
from registry.services.adapters import create_adapter
from registry.states import VersionState
from registry.web.page import Facts, FormPage, Page
from registry.web.paging import page_of
from registry.web.words import word_for


class AdapterPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/adapters/adapter.html"

    def get(self, request: HttpRequest, *, tenant: str, adapter: str) -> HttpResponse:
        line = get_adapter(actor=self.actor, tenant=tenant, name=adapter)
        versions = list_versions(actor=self.actor, tenant=tenant, adapter=adapter).prefetch_related(None)
        state = request.GET.get("state", "")
        narrowed = versions.filter(state=state) if state in set(VersionState) else versions
        facts = {
            "adapter": line,
            "rows": page_of(request, narrowed.defer("lineage", "base_revision__description")),
            "states": [("", _("all")), *((each.value, word_for(each)) for each in VersionState)],
            "state": state,
            "aliases": list_aliases_of(adapters=[line])[line.pk],
            "push": f"lorekeeper push FOLDER {line} --base-revision REVISION --wait",
            "login": f"lorekeeper login --url {settings.PUBLIC_URL}",
        }
        return self.show(facts)


class AdapterForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=63,
        help_text=gettext_lazy("Small letters, digits and hyphens. It can't be changed later."),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )
    base_model = forms.ChoiceField(
        label=gettext_lazy("Base model"), help_text=gettext_lazy("What its versions are trained on.")
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("What it is for, and whom to ask."),
    )


class NewAdapterPage(FormPage):
    actions = {"get": Action.CREATE_ADAPTER, "post": Action.CREATE_ADAPTER}
    form_class = AdapterForm
    template_name = "registry/adapters/new.html"

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        form = super().make_form(data)
        bases = list_bases(actor=self.actor)
        form.fields["base_model"].choices = [(each, each) for each in bases]  # type: ignore[attr-defined]  # a ChoiceField
        return form

    def facts(self) -> Facts:
        return {"owner": self.owner}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        owner = get_tenant(actor=self.actor, name=self.owner.name, action=Action.CREATE_ADAPTER)
        made = create_adapter(actor=self.actor, tenant=owner, **data)
        address = reverse("adapter", kwargs={"tenant": owner.name, "adapter": made.name})
        return self.leave(address, _("%(adapter)s is made. Push its first version.") % {"adapter": made})
