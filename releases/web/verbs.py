"""What people do to a release: approving it, and one confirmation for each verb."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Protocol

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.actors import Actor
from registry.permissions import Action
from registry.web.page import ConfirmPage, Facts, FormPage, Page, Question
from releases.models import Release
from releases.selectors import get_release
from releases.services.releases.approve import approve_release
from releases.services.releases.verbs import (
    abort_release,
    pause_release,
    promote_release,
    resume_release,
    retry_release,
    start_release,
)
from releases.web.forms import ReasonForm
from releases.web.words import KINDS_OF_STEP, needs_of


class _Verb(Protocol):
    def __call__(
        self, *, actor: Actor, release: Release, reason: str = "", expected_revision: int | None = None
    ) -> Release: ...


class OfRelease(Page):
    """What pages about one release know."""

    @cached_property
    def release(self) -> Release:
        names = {name: self.kwargs[name] for name in ("tenant", "alias", "number")}
        return get_release(actor=self.actor, **names, action=self.actions["post"] or Action.VIEW_TENANT)

    @property
    def back(self) -> str:
        return reverse("release", kwargs=self.kwargs)


class ApprovalForm(forms.Form):
    digest = forms.CharField(max_length=64, widget=forms.HiddenInput)
    comment = forms.CharField(
        label=gettext_lazy("Comment"), required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2})
    )


class ApproveReleasePage(OfRelease, FormPage):
    """Consent to exactly what is shown: the form carries the digest of it."""

    actions = {"get": Action.APPROVE_RELEASE, "post": Action.APPROVE_RELEASE}
    form_class = ApprovalForm
    template_name = "releases/approve.html"

    def facts(self) -> Facts:
        release = self.release
        steps = [(KINDS_OF_STEP[step.kind], needs_of(step.kind, step.spec)) for step in release.steps.all()]
        return {
            "release": release,
            "steps": steps,
            "back": self.back,
            "is_own": release.made_by_id == self.actor.person_id,
        }

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return ApprovalForm(data, initial={"digest": self.release.digest})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        approve_release(actor=self.actor, release=self.release, **data)
        return self.leave(self.back, _("You approved it."))


class VerbPage(OfRelease, ConfirmPage):
    """Asks, and does it to the release that was seen: the form carries its revision."""

    form_class = ReasonForm
    verb: ClassVar[Any]
    label: ClassVar[Promise]
    done: ClassVar[Promise]
    is_danger: ClassVar[bool] = False

    def consequences(self, release: Release) -> tuple[str, ...]:
        raise NotImplementedError

    def question(self) -> Question:
        release = self.release
        return Question(
            heading=f"{self.label} · {release.alias} #{release.number}",
            consequences=self.consequences(release),
            label=str(self.label),
            back=self.back,
            is_danger=self.is_danger,
        )

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return ReasonForm(data, initial={"revision": self.release.revision})

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        verb: _Verb = type(self).verb
        verb(
            actor=self.actor,
            release=self.release,
            reason=data["reason"],
            expected_revision=data["revision"],
        )
        return self.leave(self.back, str(self.done))


def _names(release: Release) -> dict[str, str]:
    return {"alias": str(release.alias), "stable": release.stable.name, "candidate": release.candidate.name}


class StartReleasePage(VerbPage):
    actions = {"get": Action.START_RELEASE, "post": Action.START_RELEASE}
    verb = staticmethod(start_release)
    label, done = gettext_lazy("Start"), gettext_lazy("It has started.")

    def consequences(self, release: Release) -> tuple[str, ...]:
        return (
            _("%(candidate)s is warmed up, and then takes the plan's steps by itself.") % _names(release),
            _("%(stable)s goes on answering whatever a step doesn't give to the candidate.") % _names(release),
        )


class PauseReleasePage(VerbPage):
    actions = {"get": Action.STEER_RELEASE, "post": Action.STEER_RELEASE}
    verb = staticmethod(pause_release)
    label, done = gettext_lazy("Pause"), gettext_lazy("It is paused.")

    def consequences(self, release: Release) -> tuple[str, ...]:
        return (
            _("No step ends or begins until somebody resumes it."),
            _("Requests go on being shared as they are now. A candidate that does harm is rolled back all the same."),
        )


class ResumeReleasePage(VerbPage):
    actions = {"get": Action.STEER_RELEASE, "post": Action.STEER_RELEASE}
    verb = staticmethod(resume_release)
    label, done = gettext_lazy("Resume"), gettext_lazy("It goes on.")

    def consequences(self, release: Release) -> tuple[str, ...]:
        return (_("It goes on with the step that runs, which has as much time again, or past the gate."),)


class RetryReleasePage(VerbPage):
    actions = {"get": Action.STEER_RELEASE, "post": Action.STEER_RELEASE}
    verb = staticmethod(retry_release)
    label, done = gettext_lazy("Try again"), gettext_lazy("The step has begun anew.")

    def consequences(self, release: Release) -> tuple[str, ...]:
        return (_("The step begins anew; what was measured in the last attempt no longer counts."),)


class PromoteReleasePage(VerbPage):
    actions = {"get": Action.PROMOTE_RELEASE, "post": Action.PROMOTE_RELEASE}
    verb = staticmethod(promote_release)
    label, done = gettext_lazy("Promote now"), gettext_lazy("It is promoted.")

    def consequences(self, release: Release) -> tuple[str, ...]:
        return (
            _("%(alias)s moves from %(stable)s to %(candidate)s for everybody, at once.") % _names(release),
            _("Steps that haven't passed are skipped: nothing more is measured."),
            _("%(stable)s stays warm for a while, so that a rollback needs no load.") % _names(release),
        )


class AbortReleasePage(VerbPage):
    actions = {"get": Action.STEER_RELEASE, "post": Action.STEER_RELEASE}
    verb = staticmethod(abort_release)
    label, done = gettext_lazy("Abort"), gettext_lazy("It is aborted.")
    is_danger = True

    def consequences(self, release: Release) -> tuple[str, ...]:
        return (
            _("%(stable)s answers everything of %(alias)s again.") % _names(release),
            _("The release is over; to try again takes a new one."),
        )
