"""Receivers of events, and what was sent to them. The same pages for a tenant's and for the platform's."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import WebhookEndpoint
from registry.permissions import Action
from registry.selectors import get_delivery, get_webhook, list_deliveries, list_webhooks
from registry.services.webhooks.deliveries import ping_webhook, redeliver
from registry.services.webhooks.endpoints import (
    NewSecret,
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    remove_webhook,
    rotate_secret,
)
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from registry.web.paging import page_of
from registry.web.seen import SeenField, seen
from registry.web.settings.keys import ReasonForm
from registry.webhooks.kinds import PATTERNS


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("Address"), max_length=2000, help_text=gettext_lazy("https:// and reachable from here.")
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(pattern, pattern) for pattern in PATTERNS],
        widget=forms.SelectMultiple(attrs={"size": 12}),
        help_text=gettext_lazy("“.*” means all of a family, those to come included."),
    )


class ChangeWebhookForm(WebhookForm):
    seen = SeenField()


class NewWebhookForm(WebhookForm):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=63)
    field_order = ["name", "url", "kinds"]


class RotationForm(forms.Form):
    hours = forms.IntegerField(
        label=gettext_lazy("Hours that the old secret signs, too"), min_value=0, max_value=168, initial=24
    )


class EnableForm(forms.Form):
    skip_missed = forms.BooleanField(label=gettext_lazy("Leave out what it missed"), required=False)


class Webhooks(Page):
    """What all pages about webhooks know: whose they are, and the way back."""

    actions = {"get": Action.MANAGE_TENANT}
    of_platform: ClassVar[bool] = False

    @property
    def endpoint(self) -> WebhookEndpoint:
        return get_webhook(actor=self.actor, tenant=self.kwargs.get("tenant"), name=self.kwargs["webhook"])

    def way(self, route: str, **names: str) -> str:
        """The address of another page about the same owner's webhooks."""
        if self.of_platform:
            return reverse(f"platform_{route}", kwargs=names)
        return reverse(route, kwargs={"tenant": self.owner.name, **names})

    def show_secret(self, made: NewSecret) -> HttpResponse:
        """The answer to the form that made it: it is kept nowhere else."""
        facts = self.mine(webhook=made.endpoint, text=made.text, back=self.way("webhook", webhook=made.endpoint.name))
        return self.show(facts, template="registry/settings/webhook_secret.html")

    def mine(self, **facts: Any) -> Facts:  # noqa: ANN401  context of a template
        return {"tenant": self.tenant, "prefix": "platform_" if self.of_platform else "", **facts}


class WebhooksPage(Webhooks):
    template_name = "registry/settings/webhooks.html"

    def get(self, request: HttpRequest, tenant: str | None = None) -> HttpResponse:
        rows = page_of(request, list_webhooks(actor=self.actor, tenant=tenant), ordering=("name", "pk"))
        return self.show(self.mine(rows=rows, new=self.way("webhook_new")))


class WebhookPage(Webhooks):
    template_name = "registry/settings/webhook.html"

    def get(self, request: HttpRequest, webhook: str, tenant: str | None = None) -> HttpResponse:
        endpoint = self.endpoint
        rows = page_of(request, list_deliveries(endpoint=endpoint), ordering=("-pk",))
        acts = ("change", "rotate", "ping", "enable", "disable", "remove")
        ways = {act: self.way(f"webhook_{act}", webhook=webhook) for act in acts}
        return self.show(self.mine(webhook=endpoint, rows=rows, ways=ways, back=self.way("webhooks")))


class DeliveryPage(Webhooks):
    template_name = "registry/settings/delivery.html"

    def get(self, request: HttpRequest, webhook: str, delivery: int, tenant: str | None = None) -> HttpResponse:
        found = get_delivery(endpoint=self.endpoint, number=delivery)
        again = self.way("webhook_redeliver", webhook=webhook, delivery=str(delivery))
        return self.show(self.mine(delivery=found, again=again, back=self.way("webhook", webhook=webhook)))


class NewWebhookPage(Webhooks, FormPage):
    """The secret is in the answer to the form and nowhere else."""

    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = NewWebhookForm
    template_name = "registry/settings/webhook_new.html"

    def facts(self) -> Facts:
        return self.mine(back=self.way("webhooks"))

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        made = create_webhook(actor=self.actor, tenant=self.tenant, **data)
        return self.show_secret(made)


class ChangeWebhookPage(Webhooks, FormPage):
    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}
    form_class = ChangeWebhookForm
    template_name = "registry/settings/webhook_new.html"

    def facts(self) -> Facts:
        return self.mine(webhook=self.endpoint, back=self.way("webhook", webhook=self.kwargs["webhook"]))

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        endpoint = self.endpoint
        now = {"url": endpoint.url, "kinds": list(endpoint.kinds)}
        return ChangeWebhookForm(data, initial={**now, "seen": seen(now)})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        endpoint, wanted = self.endpoint, dict(data)
        expected = WebhookEndpoint(pk=endpoint.pk, **wanted.pop("seen"))
        changed = change_webhook(actor=self.actor, endpoint=endpoint, **wanted, expected=expected)
        said = _("“%(name)s” is changed.") % {"name": changed.name}
        return self.leave(self.way("webhook", webhook=changed.name), said)


class WebhookAct(Webhooks, ConfirmPage):
    """An act on one webhook that is asked for first."""

    actions = {"get": Action.MANAGE_TENANT, "post": Action.MANAGE_TENANT}

    def ask(self, heading: str, *consequences: str, label: str, is_danger: bool = False) -> Question:
        """A question whose "cancel" leads to the webhook."""
        back = self.way("webhook", webhook=self.kwargs["webhook"])
        return Question(heading, consequences, label, back, is_danger=is_danger)

    def return_with(self, said: str) -> HttpResponse:
        return self.leave(self.way("webhook", webhook=self.kwargs["webhook"]), said)


class RotateWebhookPage(WebhookAct):
    """The new secret is in the answer to the form and nowhere else."""

    form_class = RotationForm

    def question(self) -> Question:
        return self.ask(
            _("Give “%(name)s” a new secret?") % {"name": self.endpoint.name},
            _("Deliveries are signed with the new secret from now on, and with the old one for as long as you say."),
            label=_("Make a new secret"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        made = rotate_secret(actor=self.actor, endpoint=self.endpoint, overlap=timedelta(hours=data["hours"]))
        return self.show_secret(made)


class PingWebhookPage(WebhookAct):
    def question(self) -> Question:
        return self.ask(
            _("Send “%(name)s” a test event?") % {"name": self.endpoint.name},
            _("It is of the kind “ping” and means nothing; what came of it is listed below the webhook."),
            label=_("Send it"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        ping_webhook(actor=self.actor, endpoint=self.endpoint)
        return self.return_with(_("A test event is on its way."))


class EnableWebhookPage(WebhookAct):
    form_class = EnableForm

    def question(self) -> Question:
        return self.ask(
            _("Send to “%(name)s” again?") % {"name": self.endpoint.name},
            _("What it missed is sent first, unless you leave it out."),
            label=_("Enable it"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        enable_webhook(actor=self.actor, endpoint=self.endpoint, **data)
        return self.return_with(_("It is enabled."))


class DisableWebhookPage(WebhookAct):
    form_class = ReasonForm

    def question(self) -> Question:
        return self.ask(
            _("Send nothing to “%(name)s” for now?") % {"name": self.endpoint.name},
            _("Nothing is sent until it is enabled; what happens meanwhile can be sent then."),
            label=_("Disable it"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        disable_webhook(actor=self.actor, endpoint=self.endpoint, **data)
        return self.return_with(_("It is disabled."))


class RemoveWebhookPage(WebhookAct):
    def question(self) -> Question:
        return self.ask(
            _("Remove “%(name)s”?") % {"name": self.endpoint.name},
            _("Nothing is sent to it any more, and what was sent is forgotten. The audit log keeps what happened."),
            label=_("Remove it"),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        remove_webhook(actor=self.actor, endpoint=self.endpoint)
        return self.leave(self.way("webhooks"), _("“%(name)s” is removed.") % {"name": self.kwargs["webhook"]})


class RedeliverPage(WebhookAct):
    def question(self) -> Question:
        return self.ask(
            _("Send the event %(number)s again?") % {"number": self.kwargs["delivery"]},
            _("The receiver gets it with the id that it had, and may have had it before."),
            label=_("Send it again"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        found = get_delivery(endpoint=self.endpoint, number=self.kwargs["delivery"])
        redeliver(actor=self.actor, delivery=found)
        return self.return_with(_("It is on its way again."))


PAGES: dict[str, type[Webhooks]] = {
    "webhooks": WebhooksPage,
    "webhook_new": NewWebhookPage,
    "webhook": WebhookPage,
    "webhook_change": ChangeWebhookPage,
    "webhook_rotate": RotateWebhookPage,
    "webhook_ping": PingWebhookPage,
    "webhook_enable": EnableWebhookPage,
    "webhook_disable": DisableWebhookPage,
    "webhook_remove": RemoveWebhookPage,
    "webhook_delivery": DeliveryPage,
    "webhook_redeliver": RedeliverPage,
}


def of_platform(page: type[Webhooks]) -> type[Webhooks]:
    """The same page for the platform's webhooks, which takes a platform admin."""
    actions = dict.fromkeys(page.actions, Action.MANAGE_PLATFORM)
    return type(f"Platform{page.__name__}", (page,), {"actions": actions, "of_platform": True})
