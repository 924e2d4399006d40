"""What waits for the reader: the inbox, a candidate beside what serves now, and the way from one to the next."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from registry.catalogue.versions import (
    find_next,
    get_served,
    list_aliases_of,
    list_files,
    list_waiting,
    versions_with_report,
    with_approvals,
)
from registry.models import Version
from registry.naming import default_alias_name
from registry.permissions import Action
from registry.ports import PointedAlias
from registry.reviews import review_of_listed
from registry.selectors import list_comments
from registry.services.review.configs import read_config
from registry.web.adapters.base import OfVersion, address_of
from registry.web.adapters.sentences import sentence_of, word_of_void
from registry.web.adapters.verbs import CommentForm
from registry.web.approvals import changes
from registry.web.approvals.deciding import ways_to_decide
from registry.web.differences import beside
from registry.web.page import Facts, Page
from registry.web.paging import page_of
from registry.web.texts import plain

INBOX: Final = ("created_at", "pk")


class InboxPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "registry/approvals/inbox.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        waiting = list_waiting(actor=self.actor).defer("lineage", "base_revision__description")
        rows = page_of(request, waiting, ordering=INBOX)
        standings = {version.pk: review_of_listed(version).standing for version in rows}
        return self.show({"rows": rows, "standings": standings})


class NeighbourPage(OfVersion):
    """Leads to what waits after the version, or before it; to the inbox where that was the last."""

    actions = {"get": Action.VIEW_TENANT}
    is_backwards = False

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        return redirect(next_address(self, self.version_as(Action.VIEW_TENANT), is_backwards=self.is_backwards))


def next_address(page: Page, version: Version, *, is_backwards: bool = False) -> str:
    """Where the reader goes on after (or before) the version."""
    found = find_next(actor=page.actor, version=version, is_backwards=is_backwards)
    if found is not None:
        return address_of(found, "review")
    messages.info(page.request, _("That was the first one.") if is_backwards else _("That was the last one."))
    return reverse("approvals")


class ReviewPage(OfVersion):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/approvals/review.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        version = self.version_as(Action.VIEW_TENANT, with_approvals(versions_with_report()))
        aliases = list_aliases_of(adapters=[version.adapter])[version.adapter_id]
        alias = _compared_with(version, aliases, request.GET.get("against", ""))
        facts = {
            **self.facts_of(version),
            **_review_facts(version),
            **_compared(version, None if alias is None else get_served(version=version, key=alias.version_id)),
            "aliases": [each for each in aliases if each.version_id != version.pk],
            "alias": alias,
            "ways": ways_to_decide(self.actor, version),
            "comment_form": CommentForm(initial={"back": "review"}),
        }
        return self.show(facts)


class ConfigPage(OfVersion):
    """The two configs beside each other; on its own, since their bytes lie in the store."""

    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/approvals/config.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        version = self.version_as(Action.VIEW_TENANT)
        aliases = list_aliases_of(adapters=[version.adapter])[version.adapter_id]
        alias = _compared_with(version, aliases, request.GET.get("against", ""))
        served = None if alias is None else get_served(version=version, key=alias.version_id)
        files = list_files(versions=[version, *([served] if served else [])])
        now, before = (
            read_config(tenant=self.owner.name, files=files[each.pk]) if each else None for each in (version, served)
        )
        lines = beside(plain(before or ""), plain(now or ""))
        return self.show({"version": version, "served": served, "now": now, "before": before, "lines": lines})


def _review_facts(version: Version) -> Facts:
    review = review_of_listed(version)
    return {
        "sentence": sentence_of(version),
        "standing": review.standing,
        "approvals": [(each, word_of_void(void)) for each, void in review.approvals],
        "comments": list(list_comments(version=version)),
    }


def _compared_with(version: Version, aliases: list[PointedAlias], named: str) -> PointedAlias | None:
    """The alias that is named, else the adapter's default, else any; never one that points at the version itself."""
    others = {each.name: each for each in aliases if each.version_id != version.pk}
    default = others.get(default_alias_name(version.adapter.name), next(iter(others.values()), None))
    return others.get(named, default)


def _compared(version: Version, served: Version | None) -> Facts:
    files = list_files(versions=[version, *([served] if served else [])])
    sides: list[Any] = [_side(each, files) if each else None for each in (version, served)]
    return {"served": served, "changes": changes.compare(*sides)}


def _side(version: Version, files: dict[Any, Any]) -> changes.Version:
    return changes.Version(
        name=version.name,
        base=str(version.base_revision),
        rank=version.rank,
        report=vars(version)["newest_report"] or {},
        files=changes.files_as_compared(files[version.pk]),
    )
