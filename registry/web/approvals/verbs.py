"""Deciding on a candidate: approve, decline, break the glass. Each names what the reader looked at."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import Version
from registry.permissions import Action
from registry.services.approvals import approve_version, break_glass, decline_version
from registry.states import VersionState
from registry.web.adapters.base import OfVersion, address_of
from registry.web.adapters.verbs import MAX_TEXT, ReasonForm
from registry.web.approvals.pages import next_address
from registry.web.page import ConfirmPage, Question

_SHORT = 12


class _Seen(forms.Form):
    """The digests of files and report that the reader looked at, from page to page."""

    seen_files = forms.CharField(max_length=64, widget=forms.HiddenInput)
    seen_report = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


class ApproveForm(_Seen):
    comment = forms.CharField(
        label=gettext_lazy("Comment"),
        required=False,
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 2, "autofocus": True}),
        help_text=gettext_lazy("Stands in the audit log."),
    )


class BreakGlassForm(_Seen, ReasonForm):
    field_order = ("seen_files", "seen_report", "reason")


class _Deciding(ConfirmPage, OfVersion):
    """GET takes what was looked at from the address; a form that comes without it is refused."""

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        if data is not None:
            return super().make_form(data)
        version = self.version_as(self.actions["get"] or Action.VIEW_TENANT)
        given = self.request.GET
        return self.form_class(
            initial={
                "seen_files": given.get("files", version.root_digest),
                "seen_report": given.get("report", version.validation_digest),
            }
        )

    def seen(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The digests as services take them."""
        return {"digest": data["seen_files"], "validation_digest": data["seen_report"] or None}

    def go_on(self, version: Version, said: str) -> HttpResponse:
        """To what waits next."""
        return self.leave(next_address(self, version), said)


class ApprovePage(_Deciding):
    actions = {"get": Action.APPROVE_VERSION, "post": Action.APPROVE_VERSION}
    form_class = ApproveForm

    def question(self) -> Question:
        version = self.version_as(Action.APPROVE_VERSION)
        return Question(
            heading=_("Approve %(version)s?") % {"version": version},
            consequences=(
                _("You approve the files with the digest %(files)s and the report %(report)s.")
                % {"files": version.root_digest[:_SHORT], "report": version.validation_digest[:_SHORT]},
                _("With the last approval that the policy asks for it is signed. Aliases may then be moved to it."),
            ),
            label=_("Approve it"),
            back=address_of(version, "review"),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.APPROVE_VERSION)
        done = approve_version(actor=self.actor, version=version, comment=data["comment"], **self.seen(data))
        signed = done.state == VersionState.APPROVED
        text = _("%(version)s is approved and signed.") if signed else _("Noted. %(version)s waits for more approvals.")
        return self.go_on(done, text % {"version": done})


class DeclinePage(_Deciding):
    actions = {"get": Action.APPROVE_VERSION, "post": Action.APPROVE_VERSION}
    form_class = ReasonForm

    def question(self) -> Question:
        version = self.version_as(Action.APPROVE_VERSION)
        return Question(
            heading=_("Decline %(version)s?") % {"version": version},
            consequences=(
                _("It is refused for good, whatever others have said. Its files are removed."),
                _("The reason is shown to whoever uploaded it."),
            ),
            label=_("Decline it"),
            back=address_of(version, "review"),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.APPROVE_VERSION)
        done = decline_version(actor=self.actor, version=version, reason=data["reason"])
        return self.go_on(done, _("%(version)s is declined.") % {"version": done})


class BreakGlassPage(_Deciding):
    actions = {"get": Action.BREAK_GLASS, "post": Action.BREAK_GLASS}
    form_class = BreakGlassForm

    def question(self) -> Question:
        version = self.version_as(Action.BREAK_GLASS)
        return Question(
            heading=_("Break the glass for %(version)s?") % {"version": version},
            consequences=(
                _("You approve it alone, against the approval policy of its tenant. It is signed at once."),
                _(
                    "That stands in the audit logs of the tenant and of the platform, in the server's log and in the "
                    "version's attestation."
                ),
            ),
            label=_("Approve it alone"),
            back=address_of(version, "review"),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.BREAK_GLASS)
        done = break_glass(actor=self.actor, version=version, reason=data["reason"], **self.seen(data))
        return self.go_on(done, _("%(version)s is approved and signed, against the policy.") % {"version": done})
