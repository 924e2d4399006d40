"""Base models and their pinned revisions; registered by the command line, which reads the model's files."""

from django.http import HttpRequest, HttpResponse

from registry.permissions import Action
from registry.selectors import get_base_revision, list_base_models
from registry.web.page import Page
from registry.web.paging import page_of


class BaseModelsPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "registry/settings/base_models.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show({"rows": page_of(request, list_base_models(actor=self.actor), ordering=("name",))})


class BaseRevisionPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "registry/settings/base_revision.html"

    def get(self, request: HttpRequest, base_model: str, revision: str) -> HttpResponse:
        found = get_base_revision(actor=self.actor, base_model=base_model, label=revision)
        return self.show({"revision": found, "description": found.description})
