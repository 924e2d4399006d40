"""The pages of one version: overview, validation, use and history."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from registry.catalogue.versions import (
    list_files,
    list_records_of,
    list_signed_by,
    list_uses,
    versions_as_shown,
    versions_with_report,
    with_approvals,
)
from registry.models import Version
from registry.permissions import Action
from registry.reviews import review_of_listed
from registry.selectors import list_comments, list_holders
from registry.web.adapters.base import OfVersion
from registry.web.adapters.reports import ENGINES, facts_of, shown
from registry.web.adapters.sentences import sentence_of, word_of_void
from registry.web.adapters.snippets import asking, loading, pulling, verifying
from registry.web.adapters.verbs import CommentForm
from registry.web.paging import page_of


class VersionPage(OfVersion):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/adapters/version.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        version = self.version_as(Action.VIEW_TENANT, with_approvals(versions_as_shown()))
        review = review_of_listed(version)
        facts = {
            "sentence": sentence_of(version),
            "files": list_files(versions=[version])[version.pk],
            "standing": review.standing,
            "approvals": [(each, word_of_void(void)) for each, void in review.approvals],
            "comments": list(list_comments(version=version)),
            "comment_form": CommentForm(initial={"back": "version"}),
            "signed_by": list_signed_by(version=version),
            "lineage_extra": json.dumps(version.lineage.get("extra", {}), ensure_ascii=False, indent=2),
            "verify": verifying(str(version), public_url=settings.PUBLIC_URL),
        }
        return self.show({**self.facts_of(version), **facts})


class ReportPage(OfVersion):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/adapters/report.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        version = self.version_as(Action.VIEW_TENANT, versions_with_report())
        report = _report_of(version)
        return self.show({**self.facts_of(version), "report": shown(report) if report else None})


class UsePage(OfVersion):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "registry/adapters/use.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        version = self.version_as(Action.VIEW_TENANT, versions_with_report())
        uses = list_uses(version=version)
        able = facts_of(_report_of(version)).get("engines", ())
        facts = {
            "uses": uses,
            "holders": list_holders(version=version),
            "pull": pulling(str(version)),
            "move": f"lorekeeper alias set {self.owner.name}/ALIAS {version}",
            "engines": [loading(version, engine) for engine in ENGINES if engine in able],
            "unable": [title for engine, title in ENGINES.items() if engine not in able],
            "asking": next((asking(self.owner.name, use.alias) for use in uses if use.kind == "alias"), ()),
        }
        return self.show({**self.facts_of(version), **facts})


class HistoryPage(OfVersion):
    actions = {"get": Action.READ_AUDIT}
    template_name = "registry/adapters/history.html"

    def get(self, request: HttpRequest, **_kwargs: str) -> HttpResponse:
        version = self.version_as(Action.READ_AUDIT)
        rows = page_of(request, list_records_of(actor=self.actor, version=version), ordering=("-seq",))
        return self.show({**self.facts_of(version), "rows": rows})


def _report_of(version: Version) -> dict[str, Any]:
    """The newest report; empty before the first."""
    return vars(version)["newest_report"] or {}
