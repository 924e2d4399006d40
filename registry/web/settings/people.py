"""Everybody with an account, and links by which they set a password."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from registry.permissions import Action
from registry.selectors import list_people
from registry.services.people.accounts import make_password_link
from registry.web.page import ConfirmPage, Page, Question
from registry.web.paging import page_of


class PeoplePage(Page):
    actions = {"get": Action.MANAGE_PLATFORM}
    template_name = "registry/settings/people.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.show({"rows": page_of(request, list_people(actor=self.actor), ordering=("email",))})


class PasswordLinkForPage(ConfirmPage):
    """The link is in the answer to the form and nowhere else."""

    actions = {"get": Action.MANAGE_PLATFORM, "post": Action.MANAGE_PLATFORM}

    def question(self) -> Question:
        return Question(
            heading=_("Make a link for %(email)s to set a password?") % {"email": self.kwargs["email"]},
            consequences=(
                _("Whoever has the link can set the password once, so send it by a way that you trust."),
                _("The present password goes on working until then."),
            ),
            label=_("Make the link"),
            back=reverse("people"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        link = make_password_link(actor=self.actor, email=self.kwargs["email"])
        # Not by the request: whoever says which host it is for would say where the secret goes.
        address = f"{settings.PUBLIC_URL}{reverse('password_by_link', kwargs={'key': link.key})}"
        return self.show({"link": link, "address": address}, template="registry/settings/password_link.html")
