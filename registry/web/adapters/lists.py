"""The lists of adapters and of versions, over all tenants of the reader."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from registry.catalogue.search import list_bases, search_adapters, search_versions
from registry.catalogue.versions import (
    list_aliases_of,
)
from registry.models import Version
from registry.naming import default_alias_name
from registry.permissions import Action
from registry.selectors import narrow_versions
from registry.web.adapters.filters import IN_LINEAGE, AdapterFilters, VersionFilters
from registry.web.allowing import may
from registry.web.page import Page
from registry.web.paging import Rows, page_of
from registry.web.reader import reader_of

_LOWER_CASE: Final = frozenset({"training_data_digest", "git_commit"})
_LOOKUPS: Final = {
    "state": "state",
    "base_model": "base_revision__base_model__name",
}


class _List(Page):
    actions = {"get": Action.VIEW_PLATFORM}

    def choices(self) -> dict[str, list[str]]:
        tenants = [each.name for each in reader_of(self.request).tenants]
        return {"tenants": tenants, "bases": list_bases(actor=self.actor)}


class AdaptersPage(_List):
    template_name = "registry/adapters/list.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        form = AdapterFilters(request.GET, **self.choices())
        wanted = form.cleaned_data if form.is_valid() else {}
        found = search_adapters(
            actor=self.actor,
            tenant=wanted.get("tenant", ""),
            text=wanted.get("q", ""),
            base_model=wanted.get("base_model", ""),
        )
        rows = page_of(request, found if form.is_valid() else found.none(), ordering=("tenant__name", "name"))
        makers = [each for each in reader_of(request).tenants if may(self.actor, Action.CREATE_ADAPTER, of=each)]
        return self.show({"form": form, "rows": rows, "served": _served(rows), "makers": makers})


class VersionsPage(_List):
    template_name = "registry/adapters/versions.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        form = VersionFilters(request.GET, **self.choices())
        found = search_versions(actor=self.actor)
        if form.is_valid():
            wanted = form.cleaned_data
            found = search_versions(
                actor=self.actor, tenant=wanted["tenant"], text=wanted["q"], uploader=wanted["uploader"].lower()
            )
            found = narrow_versions(found, **_narrowed(wanted))
        return self.show({"form": form, "rows": _page(request, found if form.is_valid() else found.none())})


def _page(request: HttpRequest, found: Any) -> Rows[Version]:  # noqa: ANN401  a QuerySet of versions
    # What a list shows of a version is little; its lineage can be long.
    return page_of(request, found.defer("lineage", "base_revision__description"))


def _narrowed(wanted: dict[str, Any]) -> dict[str, Any]:
    """What ``narrow_versions`` takes."""
    lineage = {key: wanted[key] for key in IN_LINEAGE if wanted[key]}
    lineage |= {key: lineage[key].lower() for key in _LOWER_CASE & lineage.keys()}
    lookups = {lookup: wanted[name] for name, lookup in _LOOKUPS.items() if wanted[name]}
    return {**lookups, "lineage": lineage, "bounds": wanted["metric"]}


def _served(rows: Rows[Any]) -> dict[int, str]:
    """The version that each adapter's default stands for, by the adapter's key."""
    defaults = {adapter.pk: default_alias_name(adapter.name) for adapter in rows}
    pointed = list_aliases_of(adapters=rows)
    return {key: each.version for key, aliases in pointed.items() for each in aliases if each.name == defaults[key]}
