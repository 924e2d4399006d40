"""The aliases of a tenant: where each points, what it stood for when, and moving it by hand."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.actors import Actor
from registry.permissions import Action
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from registry.web.paging import page_of
from releases.models import Alias
from releases.selectors import active_release, get_alias, list_aliases, rollbacks_of
from releases.served import grants_of, list_shared_aliases, times_of
from releases.services.aliases import set_alias
from releases.services.revisions import NO_ALIAS_YET
from releases.services.splits import clear_split
from releases.states import RUNNING_STATES
from releases.web.forms import ReasonForm, VersionField, offered_versions, read_version
from releases.web.watching import is_watched
from releases.web.words import KINDS_OF_MOVE

_SHOWN_ROLLBACKS = 5


class AliasFilters(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name contains"), required=False, max_length=71)
    adapter = forms.CharField(label=gettext_lazy("Adapter"), required=False, max_length=63)

    def lookups(self) -> dict[str, str]:
        """What the filters stand for; of a wrong one nothing."""
        if not self.is_valid():
            return {}
        given = {"name__contains": self.cleaned_data["name"], "adapter__name": self.cleaned_data["adapter"]}
        return {lookup: value.strip() for lookup, value in given.items() if value.strip()}


class TimeForm(forms.Form):
    """A moment in the reader's zone."""

    at = forms.DateTimeField(
        label=gettext_lazy("At the time"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"],
    )

    def moment(self) -> datetime | None:
        return self.cleaned_data.get("at") if self.is_valid() else None


class AliasesPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/aliases.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        filters = AliasFilters(request.GET)
        found = list_aliases(actor=self.actor, tenant=tenant).filter(**filters.lookups())
        rows = page_of(request, found, ordering=("name", "pk"))
        facts = {"rows": rows, "filters": filters, "is_filtered": bool(filters.lookups())}
        shared = list_shared_aliases(actor=self.actor, tenant=tenant).order_by("name")
        return self.show({**facts, "shared": shared, "tenant": self.owner})


class AliasPage(Page):
    """One alias. With ``at`` its history is what it stood for at that time alone."""

    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/alias.html"

    def get(self, request: HttpRequest, tenant: str, alias: str) -> HttpResponse:
        found = get_alias(actor=self.actor, tenant=tenant, name=alias)
        asked = TimeForm(request.GET if "at" in request.GET else None)
        at = asked.moment()
        return self.show(
            {
                **facts_of(found),
                "tenant": self.owner,
                "asked": asked,
                "at": at,
                "rows": page_of(request, times_of(found, at=at), ordering=("-number",)),
                "kinds": KINDS_OF_MOVE,
            }
        )


def facts_of(alias: Alias) -> Facts:
    """What the page of an alias shows beside its history."""
    release, rollbacks = (
        active_release(alias.pk),
        list(rollbacks_of(alias).order_by("-asked_at", "-pk")[:_SHOWN_ROLLBACKS]),
    )
    return {
        "alias": alias,
        "is_live": (release is not None and release.state in RUNNING_STATES) or is_watched(rollbacks[:1]),
        "split": getattr(alias, "split", None),
        "protection": getattr(alias, "protection", None),
        "release": release,
        "grants": grants_of(alias).order_by("tenant__name"),
        "rollbacks": rollbacks,
    }


class MoveForm(ReasonForm):
    version = VersionField(
        label=gettext_lazy("To the version"), help_text=gettext_lazy("An approved one, as adapter@version.")
    )
    field_order = ["version", "reason"]

    def __init__(self, data: Any, *, actor: Actor, tenant: str, initial: Mapping[str, Any]) -> None:  # noqa: ANN401  a QueryDict
        super().__init__(data, initial=dict(initial))
        self._actor, self._tenant = actor, tenant

    def clean_version(self) -> Any:  # noqa: ANN401  a Version
        return read_version(self.cleaned_data["version"], actor=self._actor, tenant=self._tenant)


class NewAliasForm(MoveForm):
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=71, help_text=gettext_lazy("What callers write as the model.")
    )
    field_order = ["name", "version", "reason"]


class MoveAliasPage(FormPage):
    """By hand: at once and for everybody. What was seen of the alias goes with the form."""

    actions = {"get": Action.MOVE_ALIAS, "post": Action.MOVE_ALIAS}
    form_class = MoveForm
    template_name = "releases/alias_move.html"

    @cached_property
    def alias(self) -> Alias:
        return get_alias(actor=self.actor, tenant=self.owner.name, name=self.kwargs["alias"], action=Action.MOVE_ALIAS)

    def facts(self) -> Facts:
        alias = self.alias
        names = {"tenant": self.owner.name, "adapter": alias.adapter.name}
        offers = offered_versions(actor=self.actor, **names, but=alias.version_id)
        return {"tenant": self.owner, "alias": alias, "offers": offers}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        initial = {"revision": self.alias.revision}
        return MoveForm(data, actor=self.actor, tenant=self.owner.name, initial=initial)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        return self.leave(*moved(self.actor, self.alias.name, data))


class NewAliasPage(FormPage):
    actions = {"get": Action.MOVE_ALIAS, "post": Action.MOVE_ALIAS}
    form_class = NewAliasForm
    template_name = "releases/alias_move.html"

    def facts(self) -> Facts:
        offers = offered_versions(actor=self.actor, tenant=self.owner.name, adapter=None)
        return {"tenant": self.owner, "alias": None, "offers": offers}

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        given = {"version": self.request.GET.get("version", ""), "revision": NO_ALIAS_YET}
        return NewAliasForm(data, actor=self.actor, tenant=self.owner.name, initial=given)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        return self.leave(*moved(self.actor, data["name"], data))


def moved(actor: Actor, name: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """Carry the move out; the alias's address and what to say."""
    version = data["version"]
    adapter = version.adapter
    alias = set_alias(
        actor=actor,
        tenant=adapter.tenant,
        name=name,
        adapter=adapter,
        version=version,
        expected_revision=data["revision"],
        reason=data["reason"],
    )
    said = _("%(alias)s points at %(version)s.") % {"alias": alias, "version": alias.version.name}
    return reverse("alias", kwargs={"tenant": adapter.tenant.name, "alias": alias.name}), said


class ClearSplitPage(ConfirmPage):
    """Ends a split that somebody made by hand; one of a release ends with that."""

    actions = {"get": Action.MOVE_ALIAS, "post": Action.MOVE_ALIAS}

    @cached_property
    def alias(self) -> Alias:
        return get_alias(actor=self.actor, tenant=self.owner.name, name=self.kwargs["alias"], action=Action.MOVE_ALIAS)

    @property
    def back(self) -> str:
        return reverse("alias", kwargs=self.kwargs)

    def question(self) -> Question:
        names = {"alias": str(self.alias), "version": self.alias.version.name}
        return Question(
            heading=_("End the split of %(alias)s?") % names,
            consequences=(_("%(version)s answers everything of %(alias)s again.") % names,),
            label=_("End the split"),
            back=self.back,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        clear_split(actor=self.actor, alias=self.alias)
        return self.leave(self.back, _("The split is over."))
