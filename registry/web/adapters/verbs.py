"""What people do to a version: yank, revoke, have it validated again, comment."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.catalogue.versions import (
    list_uses,
)
from registry.permissions import Action
from registry.selectors import list_holders
from registry.services.review.comments import write_comment
from registry.services.validation import request_revalidation
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import VersionState
from registry.web.adapters.base import OfVersion, address_of
from registry.web.adapters.sentences import if_revoked, if_yanked
from registry.web.page import ConfirmPage, Facts, FormPage, Question

MAX_TEXT: Final = 4000


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}),
        help_text=gettext_lazy("Stands in the audit log."),
    )


class OptionalReasonForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_TEXT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "autofocus": True}),
        help_text=gettext_lazy("Stands in the audit log."),
    )


class CommentForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("Comment"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Everybody in the tenant sees it. It is kept for ever."),
    )
    # Where it was written.
    back = forms.ChoiceField(
        choices=[("version", ""), ("review", "")], initial="version", required=False, widget=forms.HiddenInput
    )


class YankPage(ConfirmPage, OfVersion):
    actions = {"get": Action.WITHDRAW_VERSION, "post": Action.WITHDRAW_VERSION}
    form_class = ReasonForm

    def question(self) -> Question:
        version = self.version_as(Action.WITHDRAW_VERSION)
        return Question(
            heading=_("Yank %(version)s?") % {"version": version},
            consequences=if_yanked(list_uses(version=version), list_holders(version=version)),
            label=_("Yank it"),
            back=address_of(version),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.WITHDRAW_VERSION)
        yanked = yank_version(actor=self.actor, version=version, reason=data["reason"])
        return self.leave(address_of(yanked), _("%(version)s is yanked.") % {"version": yanked})


class RevokePage(ConfirmPage, OfVersion):
    actions = {"get": Action.WITHDRAW_VERSION, "post": Action.WITHDRAW_VERSION}
    form_class = ReasonForm

    def question(self) -> Question:
        version = self.version_as(Action.WITHDRAW_VERSION)
        return Question(
            heading=_("Revoke %(version)s?") % {"version": version},
            consequences=if_revoked(list_uses(version=version), list_holders(version=version)),
            label=_("Revoke it for good"),
            back=address_of(version),
            is_danger=True,
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.WITHDRAW_VERSION)
        revoked = revoke_version(actor=self.actor, version=version, reason=data["reason"])
        said = _("%(version)s is revoked. Who still holds it is said below.") % {"version": revoked}
        return self.leave(address_of(revoked, "version_use"), said)


class RevalidatePage(ConfirmPage, OfVersion):
    actions = {"get": Action.REVALIDATE_VERSION, "post": Action.REVALIDATE_VERSION}
    form_class = OptionalReasonForm

    def question(self) -> Question:
        version = self.version_as(Action.REVALIDATE_VERSION)
        is_candidate = version.state == VersionState.CANDIDATE
        follows = (
            _("Approvals of the present report don't count for the new one; if that fails, the version is refused.")
            if is_candidate
            else _("It keeps its state and the report it was decided on, and gains a new one beside it.")
        )
        return Question(
            heading=_("Validate %(version)s again?") % {"version": version},
            consequences=(_("All checks run again, under the rules and on the evaluation set of today."), follows),
            label=_("Validate it again"),
            back=address_of(version),
        )

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.REVALIDATE_VERSION)
        request_revalidation(actor=self.actor, version=version, reason=data["reason"])
        return self.leave(address_of(version), _("%(version)s is validated again.") % {"version": version})


class CommentPage(FormPage, OfVersion):
    """The form stands on other pages; this one shows it when something is wrong with what was written."""

    actions = {"get": Action.COMMENT_VERSION, "post": Action.COMMENT_VERSION}
    form_class = CommentForm
    template_name = "registry/adapters/comment.html"

    def facts(self) -> Facts:
        return {"version": self.version_as(Action.COMMENT_VERSION)}

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        version = self.version_as(Action.COMMENT_VERSION)
        write_comment(actor=self.actor, version=version, text=data["text"])
        return self.leave(f"{address_of(version, data['back'] or 'version')}#comments")
