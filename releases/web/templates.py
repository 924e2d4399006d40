"""Release templates: the plans that releases are made from, in editions."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import yaml
from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.documents.read import MAX_CHARACTERS
from registry.errors import InvalidInput, PreconditionFailed
from registry.permissions import Action
from registry.web.differences import Sides, beside
from registry.web.page import Facts, FormPage, Page
from registry.web.paging import page_of
from releases.models import ReleaseTemplate
from releases.plan.parse import plan_of
from releases.plan.sequence import steps_of
from releases.services.templates import read_plan, write_template
from releases.templates import editions_of, get_release_template, list_release_templates
from releases.web.words import KINDS_OF_STEP, needs_of

_LARGEST: Final = 2**31 - 1


class EditionForm(forms.Form):
    number = forms.IntegerField(required=False, min_value=0, max_value=_LARGEST)

    def wanted(self) -> int | None:
        return self.cleaned_data.get("number") if self.is_valid() else None


class TemplateForm(forms.Form):
    """``seen`` is the digest and number of the edition that was in use when the person began."""

    text = forms.CharField(
        label=gettext_lazy("Plan, as YAML"),
        strip=False,
        max_length=MAX_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "class": "code"}),
        help_text=gettext_lazy("What you leave out has its default; times are in minutes, shares in percent."),
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean_text(self) -> str:
        """What is wrong stands next to the text, whichever path of it that is about."""
        text = str(self.cleaned_data["text"]).replace("\r\n", "\n")
        try:
            read_plan(text, field="text")
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from error
        return text


class NewTemplateForm(TemplateForm):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=63)
    field_order = ["name", "text"]


def text_of(template: ReleaseTemplate | None) -> str:
    """The YAML as it was written; of the built-in one, its document."""
    if template is None:
        return ""
    return template.text or yaml.safe_dump(template.document, sort_keys=False, allow_unicode=True)


def state_of(template: ReleaseTemplate | None) -> str:
    return "" if template is None else f"{template.number}:{template.digest}"


def require_seen(template: ReleaseTemplate | None, seen: str) -> None:
    """Raise ``PreconditionFailed`` unless the edition in use is the one that the person saw."""
    if state_of(template) != seen:
        raise PreconditionFailed(
            _("Somebody wrote another edition meanwhile, or there is a template of this name. Look at it first.")
        )


class TemplatesPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/templates.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        found = list_release_templates(actor=self.actor, tenant=tenant)
        return self.show({"templates": found, "tenant": self.owner})


class TemplatePage(Page):
    """One edition of a template, beside the one before it."""

    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/template.html"

    def get(self, request: HttpRequest, tenant: str, template: str) -> HttpResponse:
        number = EditionForm(request.GET).wanted()
        found = get_release_template(actor=self.actor, tenant=tenant, name=template, number=number)
        rows = page_of(request, editions_of(found), ordering=("-number",), size=20)
        return self.show({"tenant": self.owner, "rows": rows, **facts_of(found)})


def facts_of(template: ReleaseTemplate) -> Facts:
    before = editions_of(template).filter(number=template.number - 1).first()
    lines = Sides(()) if before is None else beside(text_of(before), text_of(template))
    steps = [(KINDS_OF_STEP[kind], needs_of(kind, spec)) for kind, spec in steps_of(plan_of(template.document))]
    facts = {"template": template, "text": text_of(template), "steps": steps}
    return {**facts, "before": before, "lines": lines}


class EditTemplatePage(FormPage):
    """Writes the next edition. With ``look``: shows what would change, without writing it."""

    actions = {"get": Action.MANAGE_RELEASE_TEMPLATE, "post": Action.MANAGE_RELEASE_TEMPLATE}
    form_class = TemplateForm
    template_name = "releases/template_edit.html"

    @cached_property
    def present(self) -> ReleaseTemplate:
        return get_release_template(actor=self.actor, tenant=self.owner.name, name=self.kwargs["template"])

    def facts(self) -> Facts:
        return {"tenant": self.owner, "template": self.present}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        present = self.present
        return TemplateForm(data, initial={"text": text_of(present), "seen": state_of(present)})

    def post(self, request: HttpRequest, **kwargs: str) -> HttpResponse:
        if "look" not in request.POST:
            return super().post(request, **kwargs)
        form = self.make_form(request.POST)
        shown = self.look(form.cleaned_data["text"]) if form.is_valid() else {}
        return self.show({**self.facts(), **shown, "form": form}, status=422 if form.errors else 200)

    def look(self, text: str) -> Facts:
        """What would change, and the steps that the text means."""
        plan = read_plan(text, field="text")
        steps = [(KINDS_OF_STEP[kind], needs_of(kind, spec)) for kind, spec in steps_of(plan)]
        return {"look": True, "lines": beside(text_of(self.present), text), "steps": steps}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        return self.leave(*written(self, self.kwargs["template"], data))


class NewTemplatePage(FormPage):
    actions = {"get": Action.MANAGE_RELEASE_TEMPLATE, "post": Action.MANAGE_RELEASE_TEMPLATE}
    form_class = NewTemplateForm
    template_name = "releases/template_edit.html"

    def facts(self) -> Facts:
        return {"tenant": self.owner, "template": None}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        known = list_release_templates(actor=self.actor, tenant=self.owner.name)
        wanted = self.request.GET.get("like")
        like = next((each for each in known if each.name == wanted), None)
        return NewTemplateForm(data, initial={"text": text_of(like)})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        return self.leave(*written(self, data["name"], {**data, "seen": ""}))


def written(page: Page, name: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """Write the edition; the template's address and what to say."""
    template = write_template(
        actor=page.actor,
        tenant=page.owner,
        name=name,
        text=data["text"],
        unchanged=lambda in_use: require_seen(in_use, data["seen"]),
    )
    address = reverse("release_template", kwargs={"tenant": page.owner.name, "template": name})
    return address, _("Edition %(number)d is in use for new releases.") % {"number": template.number}
