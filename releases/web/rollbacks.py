"""Rolling back: one confirmation that says exactly what will change, and how long each rollback took."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.permissions import Action
from registry.web.page import ConfirmPage, Page, Question
from registry.web.paging import page_of
from releases.models import Alias, Release
from releases.outlook import Outlook, outlook_of_alias, outlook_of_release
from releases.selectors import get_alias, get_release, rollbacks_of
from releases.served import grants_of
from releases.services.aliases import roll_back_alias
from releases.services.releases.rollback import roll_back_release
from releases.states import MoveKind
from releases.web.forms import ReasonForm


class RollbackForm(ReasonForm):
    """``ends`` is the release that the question said will end; 0: none."""

    ends = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(self, data: Any, *, alias: Alias, outlook: Outlook | None) -> None:  # noqa: ANN401  a QueryDict
        ending = outlook.ends.number if outlook and outlook.ends else 0
        super().__init__(data, initial={"revision": alias.revision, "ends": ending})
        self._now = (alias.revision, ending)

    def clean(self) -> dict[str, Any]:
        """Refuse where a release has begun or ended since, but not what was just rolled back by the same click."""
        data: dict[str, Any] = super().clean() or {}
        revision, ending = self._now
        if data.get("revision") == revision and data.get("ends") != ending:
            raise forms.ValidationError(_("A release has begun or ended since. Cancel, and look at it again."))
        return data


class RollBackAliasPage(ConfirmPage):
    """Undoes the newest move of the alias, or the release that is under way."""

    actions = {"get": Action.ROLL_BACK_ALIAS, "post": Action.ROLL_BACK_ALIAS}

    @cached_property
    def alias(self) -> Alias:
        names = {"tenant": self.kwargs["tenant"], "name": self.kwargs["alias"]}
        return get_alias(actor=self.actor, **names, action=Action.ROLL_BACK_ALIAS)

    @cached_property
    def outlook(self) -> Outlook:
        return outlook_of_alias(self.alias)

    @property
    def back(self) -> str:
        return reverse("alias", kwargs=self.kwargs)

    def question(self) -> Question:
        return question_of(self.alias, self.outlook, back=self.back)

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return RollbackForm(data, alias=self.alias, outlook=self.outlook)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        asked_at, seen = timezone.now(), data["revision"]
        facts = {"reason": data["reason"], "from_revision": seen, "asked_at": asked_at}
        alias = roll_back_alias(actor=self.actor, alias=self.alias, **facts)
        is_done = alias.revision == seen or alias.moved_by == MoveKind.ROLLBACK
        said = (
            _("Rolled back: %(version)s answers.")
            if is_done
            else _("%(version)s was moved in meanwhile: left as it is.")
        )
        return self.leave(self.back, said % {"version": alias.version.name})


class RollBackReleasePage(ConfirmPage):
    """Has a release's candidate answer nothing more, in whatever state the release is."""

    actions = {"get": Action.ROLL_BACK_ALIAS, "post": Action.ROLL_BACK_ALIAS}

    @cached_property
    def release(self) -> Release:
        return get_release(actor=self.actor, **self.kwargs, action=Action.ROLL_BACK_ALIAS)

    @cached_property
    def outlook(self) -> Outlook | None:
        return outlook_of_release(self.release)

    @property
    def back(self) -> str:
        return reverse("release", kwargs=self.kwargs)

    def question(self) -> Question:
        return question_of(self.release.alias, self.outlook, back=self.back)

    def make_form(self, data: Any = None) -> forms.Form:  # noqa: ANN401  a QueryDict or None
        return RollbackForm(data, alias=self.release.alias, outlook=self.outlook)

    def save(self, data: Mapping[str, Any]) -> HttpResponse:
        asked_at = timezone.now()
        release = roll_back_release(actor=self.actor, release=self.release, reason=data["reason"], asked_at=asked_at)
        names = {"candidate": release.candidate.name}
        return self.leave(self.back, _("Rolled back: %(candidate)s answers nothing of it any more.") % names)


class RollbacksPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/rollbacks.html"

    def get(self, request: HttpRequest, tenant: str, alias: str) -> HttpResponse:
        found = get_alias(actor=self.actor, tenant=tenant, name=alias)
        rows = page_of(request, rollbacks_of(found), ordering=("-asked_at", "-pk"))
        return self.show({"rows": rows, "alias": found, "tenant": self.owner})


def question_of(alias: Alias, outlook: Outlook | None, *, back: str) -> Question:
    """Exactly what will change, in sentences."""
    return Question(
        heading=_("Roll back %(alias)s?") % {"alias": alias},
        consequences=tuple(_consequences(alias, outlook)),
        label=_("Roll back"),
        back=back,
        is_danger=True,
    )


def _consequences(alias: Alias, outlook: Outlook | None) -> Iterator[str]:
    if outlook is None:
        yield _("There is nothing to undo: nothing of this release answers, or the alias has moved on since.")
        return
    if outlook.to is None:
        yield _("There is no earlier version to go back to that isn't revoked or removed.")
        if outlook.ends is None:
            return
    else:
        names = {"left": outlook.left.name, "to": outlook.to.name}
        yield _("From %(left)s to %(to)s: %(to)s answers, %(left)s answers nothing more.") % names
    yield from _whom(alias, outlook)
    if outlook.ends is not None:
        yield _("%(alias)s #%(number)d, which is under way, ends as rolled back.") % {
            "alias": alias,
            "number": outlook.ends.number,
        }
    yield _("%(left)s is cooled: it leaves its nodes once its answers under way are over.") % {
        "left": outlook.left.name
    }
    yield _("It happens at once, in one transaction. It needs no approval; gateways follow within milliseconds.")


def _whom(alias: Alias, outlook: Outlook) -> Iterator[str]:
    """Who notices."""
    split = getattr(alias, "split", None)
    if outlook.to is not None and outlook.to.pk != alias.version_id:
        yield _("For everybody who calls %(alias)s.") % {"alias": alias}
    elif split is None or not (split.basis_points or split.allow):
        yield _("For nobody who calls %(alias)s: the candidate has no share of the answers now.") % {"alias": alias}
    elif split.basis_points:
        share = f"{split.basis_points / 100:g}"
        yield _("For the %(share)s %% of requests to %(alias)s that the candidate answers now.") % {
            "share": share,
            "alias": alias,
        }
    if split is not None and outlook.ends is not None and split.allow:
        yield _("For the tenants %(names)s, who have the candidate now.") % {"names": ", ".join(split.allow)}
    shared = [grant.tenant.name for grant in grants_of(alias)]
    if shared:
        yield _("Also for the tenants that it is shared with: %(names)s.") % {"names": ", ".join(shared)}
