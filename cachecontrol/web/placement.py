"""Where one version is and why, and what an operator of its tenant does about that."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cachecontrol.explanations import Explanation, explain
from cachecontrol.fleet import version_of
from cachecontrol.models import Node, Residency
from cachecontrol.policy.document import PolicyDocument
from cachecontrol.selectors import find_node
from cachecontrol.services.places import Spot, spots_for
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Desired, Observed
from cachecontrol.web.seen import told_to
from registry.models import Version
from registry.permissions import Action
from registry.web.page import ConfirmPage, Facts, Page, Question
from releases.models import Alias

_REASON = 500


class VersionPage(Page):
    """About one version of the tenant in the address."""

    @cached_property
    def version(self) -> Version:
        return version_of(owner=self.owner, adapter=self.kwargs["adapter"], name=self.kwargs["version"])

    @property
    def address(self) -> str:
        names = {name: self.kwargs[name] for name in ("tenant", "adapter", "version")}
        return reverse("placement", kwargs=names)

    @cached_property
    def aliases(self) -> list[Alias]:
        """Those that point to it."""
        return list(Alias.objects.filter(version=self.version).select_related("tenant", "adapter").order_by("name"))


class PlacementPage(VersionPage):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "cachecontrol/placement.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        found = explain(version=self.version)
        names = {alias.name for alias in self.aliases}
        facts = {"version": self.version, "found": found, "aliases": self.aliases}
        facts |= {"evictions": [told_to(self.actor, each) for each in found.evictions]}
        facts |= {"is_pinned": _is_pinned(found.policy.document, self.version, names)}
        return self.show({**facts, "is_changing": _is_changing(found)})


class WarmForm(forms.Form):
    node = forms.ChoiceField(label=gettext_lazy("On which node"))

    def __init__(self, data: Any, spots: list[Spot]) -> None:  # noqa: ANN401  a QueryDict or None
        super().__init__(data)
        field: Any = self.fields["node"]
        field.choices = [(spot.node.name, _words_for(spot)) for spot in spots]


class WarmPage(ConfirmPage, VersionPage):
    """Loads the version on a node that is chosen here."""

    actions = {"get": Action.OPERATE_VERSION, "post": Action.OPERATE_VERSION}

    def question(self) -> Question:
        return Question(
            heading=_("Warm %(version)s?") % {"version": self.version},
            consequences=(
                _("The node fetches its files, checks digests and signature, and loads it into its engine."),
                _("Where every place is taken, the version that is worth least there leaves the engine for the disk."),
                _("Nothing happens where it is loaded already."),
            ),
            label=_("Warm it"),
            back=self.address,
        )

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        spots = spots_for(self.version)
        spots.sort(key=lambda spot: (spot.node.is_closed, spot.wants_it, -spot.free, spot.node.name))
        return WarmForm(data, spots)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        node = find_node(name=data["node"])
        warm_version(actor=self.actor, node=node, version=self.version)
        return self.leave(self.address, _("%(version)s is to be loaded on %(node)s.") % self._names(node))

    def _names(self, node: Node) -> dict[str, object]:
        return {"version": self.version, "node": node}


class EvictForm(forms.Form):
    to = forms.ChoiceField(
        label=gettext_lazy("How far"),
        choices=[
            (Desired.DISK.value, gettext_lazy("Out of the engine; its files stay on the node's disk")),
            (Desired.ABSENT.value, gettext_lazy("Wholly: its files leave the disk, too")),
        ],
        widget=forms.RadioSelect,
        initial=Desired.DISK.value,
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=_REASON,
        required=False,
        help_text=gettext_lazy("Kept in the audit log."),
    )


class EvictPage(ConfirmPage, VersionPage):
    """Takes the version from one node."""

    actions = {"get": Action.OPERATE_VERSION, "post": Action.OPERATE_VERSION}
    form_class = EvictForm

    def question(self) -> Question:
        return Question(
            heading=_("Evict %(version)s from %(node)s?") % {"version": self.version, "node": self.kwargs["node"]},
            consequences=(*self._elsewhere(), *self._pointed()),
            label=_("Evict it"),
            back=self.address,
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        node, to = find_node(name=self.kwargs["node"]), Desired(data["to"])
        evict_version(actor=self.actor, node=node, version=self.version, reason=data["reason"], to=to)
        said = _("%(version)s is to leave %(node)s.")
        return self.leave(self.address, said % {"version": self.version, "node": node})

    def _elsewhere(self) -> tuple[str, ...]:
        loaded = Residency.objects.filter(version=self.version, observed=Observed.LOADED.value)
        elsewhere = loaded.exclude(node__name=self.kwargs["node"]).order_by("node__name")
        others = list(elsewhere.values_list("node__name", flat=True))
        first = _("Gateways stop sending it requests there; what runs ends first, then it leaves the engine.")
        if others:
            return first, _("It stays loaded on %(nodes)s.") % {"nodes": ", ".join(others)}
        return first, _("It is loaded nowhere else: the next request for it waits until it is loaded again.")

    def _pointed(self) -> tuple[str, ...]:
        names = ", ".join(alias.name for alias in self.aliases)
        return (_("These aliases point to it: %(names)s.") % {"names": names},) if names else ()


def _words_for(spot: Spot) -> str:
    names: Facts = {"node": spot.node, "taken": spot.taken, "places": spot.places}
    if spot.wants_it:
        return _("%(node)s: it is there or on its way") % names
    if spot.node.is_closed:
        return _("%(node)s: takes nothing new now") % names
    return _("%(node)s: %(taken)d of %(places)d places taken") % names


def _is_pinned(document: PolicyDocument, version: Version, aliases: set[str]) -> bool:
    """Whether a pin of the document stands for the version, by its name or by an alias that points to it."""
    where = (version.adapter.tenant.name, version.adapter.name)
    return any(
        (pin.tenant, pin.adapter) == where and (pin.version == version.name or pin.alias in aliases)
        for pin in document.pins
    )


def _is_changing(found: Explanation) -> bool:
    return found.load is not None or any(_is_in_work(each) for each in found.residencies)


def _is_in_work(residency: Residency) -> bool:
    if residency.observed == Observed.FAILED:
        return residency.generation > residency.acted_generation
    moving = {Observed.FETCHING, Observed.LOADING, Observed.DRAINING}
    return residency.observed in moving or residency.generation > residency.acted_generation
