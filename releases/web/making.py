"""Making a release: which alias, to which version, by which plan; what it will do can be looked at first."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.actors import Actor
from registry.documents.read import MAX_CHARACTERS
from registry.errors import InvalidInput, NotFound
from registry.models import Version
from registry.permissions import Action
from registry.web.page import Facts, FormPage
from releases.models import Alias
from releases.plan.document import PlanDocument
from releases.plan.parse import plan_of
from releases.plan.sequence import release_digest, steps_of
from releases.selectors import get_alias, list_aliases
from releases.services.releases.make import make_release
from releases.services.templates import read_plan
from releases.templates import DEFAULT, get_release_template, list_release_templates
from releases.web.forms import VersionField, offered_versions, read_version
from releases.web.words import KINDS_OF_STEP, needs_of

_OFFERED_ALIASES: Final = 500


class ReleaseForm(forms.Form):
    """``seen`` is the alias with the revision that the person saw it at, as ``name#3``."""

    alias = forms.CharField(
        label=gettext_lazy("Alias"),
        help_text=gettext_lazy("The name whose callers get it."),
        max_length=200,
        widget=forms.TextInput(attrs={"list": "offered-aliases", "autocomplete": "off", "spellcheck": "false"}),
    )
    candidate = VersionField(
        label=gettext_lazy("Candidate"),
        help_text=gettext_lazy("The approved version that it goes to, as adapter@version."),
    )
    template = forms.ChoiceField(
        label=gettext_lazy("Plan from the template"),
        help_text=gettext_lazy("“default” is a careful plan: warm up, shadow, then 10 % and 50 % of requests."),
    )
    plan_text = forms.CharField(
        label=gettext_lazy("Or a plan of its own, as YAML"),
        required=False,
        strip=False,
        max_length=MAX_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "code"}),
        help_text=gettext_lazy("Takes the place of the template."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"), required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2})
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any, *, actor: Actor, tenant: str, initial: Mapping[str, Any]) -> None:  # noqa: ANN401  a QueryDict
        super().__init__(data, initial=dict(initial))
        self._actor, self._tenant = actor, tenant
        templates = list_release_templates(actor=actor, tenant=tenant)
        self.fields["template"].choices = [(each.name, each.name) for each in templates]  # type: ignore[attr-defined]  # a ChoiceField

    def clean_alias(self) -> Alias:
        try:
            return get_alias(actor=self._actor, tenant=self._tenant, name=self.cleaned_data["alias"])
        except NotFound as error:
            raise forms.ValidationError(error.message) from error

    def clean_candidate(self) -> Version:
        return read_version(self.cleaned_data["candidate"], actor=self._actor, tenant=self._tenant)

    def clean_plan_text(self) -> str | None:
        """What is wrong in a plan stands next to the plan, whichever of its paths it is about."""
        text = str(self.cleaned_data["plan_text"])
        if not text.strip():
            return None
        try:
            read_plan(text, field="plan_text")
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from error
        return text

    def plan(self) -> PlanDocument:
        """The plan that a form without faults asks for."""
        text = self.cleaned_data["plan_text"]
        if text is not None:
            return read_plan(text, field="plan_text")
        template = get_release_template(actor=self._actor, tenant=self._tenant, name=self.cleaned_data["template"])
        return plan_of(template.document)

    def expected_revision(self) -> int | None:
        """The revision that the person saw; None where another alias was chosen since."""
        name, _mark, revision = self.cleaned_data["seen"].rpartition("#")
        return int(revision) if name == self.cleaned_data["alias"].name and revision.isdecimal() else None


class NewReleasePage(FormPage):
    actions = {"get": Action.MAKE_RELEASE, "post": Action.MAKE_RELEASE}
    form_class = ReleaseForm
    template_name = "releases/release_new.html"
    form: ReleaseForm

    def facts(self) -> Facts:
        alias = self.wanted
        near, but = (None, None) if alias is None else (alias.adapter.name, alias.version_id)
        offers = offered_versions(actor=self.actor, tenant=self.owner.name, adapter=near, but=but)
        aliases = list_aliases(actor=self.actor, tenant=self.owner.name).values_list("name", flat=True)
        return {"tenant": self.owner, "alias": alias, "offers": offers, "aliases": aliases[:_OFFERED_ALIASES]}

    @cached_property
    def wanted(self) -> Alias | None:
        """The alias that is chosen, or with which the page was opened."""
        name = self.request.POST.get("alias") or self.request.GET.get("alias", "")
        return list_aliases(actor=self.actor, tenant=self.owner.name).filter(name=name).first() if name else None

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        initial: dict[str, Any] = {"template": DEFAULT, "candidate": self.request.GET.get("candidate", "")}
        alias = None if data else self.wanted
        if alias is not None:
            initial |= {"alias": alias.name, "seen": f"{alias.name}#{alias.revision}"}
        self.form = ReleaseForm(data, actor=self.actor, tenant=self.owner.name, initial=initial)
        return self.form

    def post(self, request: HttpRequest, **kwargs: str) -> HttpResponse:
        """With ``look``: show what the release would do, without making it."""
        if "look" not in request.POST:
            return super().post(request, **kwargs)
        form = self.make_form(request.POST)
        shown = look_of(self.form) if form.is_valid() else {}
        return self.show({**self.facts(), **shown, "form": form}, status=422 if form.errors else 200)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        alias, facts = data["alias"], {name: data[name] for name in ("candidate", "template", "plan_text", "reason")}
        release = make_release(actor=self.actor, alias=alias, expected_revision=self.form.expected_revision(), **facts)
        address = reverse("release", kwargs={"tenant": self.owner.name, "alias": alias.name, "number": release.number})
        return self.leave(address, _("The release is made. Nothing changes for callers until it is started."))


def look_of(form: ReleaseForm) -> Facts:
    """What the release of a form without faults would do, and the digest that people would approve."""
    alias, candidate, plan = form.cleaned_data["alias"], form.cleaned_data["candidate"], form.plan()
    digest = release_digest(
        alias=str(alias),
        stable=alias.version.root_digest,
        candidate=candidate.root_digest,
        plan=plan.model_dump(mode="json"),
    )
    steps = [(KINDS_OF_STEP[kind], needs_of(kind, spec)) for kind, spec in steps_of(plan)]
    return {
        "look": True,
        "steps": steps,
        "digest": digest,
        "plan": plan,
        "candidate": candidate,
        "stable": alias.version,
    }
