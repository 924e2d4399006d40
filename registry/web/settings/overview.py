"""Where all settings are found."""

from django.http import HttpRequest, HttpResponse

from registry.permissions import Action
from registry.web.page import Page
from registry.web.reader import reader_of


class SettingsPage(Page):
    actions = {"get": Action.VIEW_PLATFORM}
    template_name = "registry/settings/overview.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show({"tenant": reader_of(request).tenant})
