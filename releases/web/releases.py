"""The list of a tenant's releases, and the page of one: its plan as a timeline, and how its two versions do."""

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy

from registry.actors import Actor
from registry.permissions import Action
from registry.web.page import Facts, Page
from registry.web.paging import page_of
from registry.web.words import word_for
from releases.models import Release, ReleaseApproval, ReleaseStep
from releases.outlook import brought_it
from releases.selectors import get_release, list_releases
from releases.states import ACTIVE_STATES, RUNNING_STATES, ReleaseState
from releases.web.figures import charts_of, metric_rows
from releases.web.offers import verbs_of
from releases.web.standing import standing_of
from releases.web.watching import is_watched
from releases.web.words import KINDS_OF_STEP, LOOKS_OF_STEP, STATES_OF_STEP, needs_of

_UNDER_WAY: Final = "active"
# A list reads no verdicts: they are most of a step.
_SHOWN: Final = (
    Prefetch("approvals", queryset=ReleaseApproval.objects.only("release")),
    Prefetch("steps", queryset=ReleaseStep.objects.defer("spec", "verdict", "course")),
)


class ReleaseFilters(forms.Form):
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        required=False,
        choices=[
            ("", gettext_lazy("all")),
            (_UNDER_WAY, gettext_lazy("not over")),
            *((state.value, word_for(state)) for state in ReleaseState),
        ],
    )
    alias = forms.CharField(label=gettext_lazy("Alias"), required=False, max_length=71)

    def lookups(self) -> dict[str, Any]:
        """What the filters stand for; of a wrong one nothing."""
        if not self.is_valid():
            return {}
        state, alias = self.cleaned_data["state"], self.cleaned_data["alias"].strip()
        found: dict[str, Any] = {"alias__name": alias} if alias else {}
        if state:
            found["state__in"] = sorted(ACTIVE_STATES) if state == _UNDER_WAY else [state]
        return found


class ReleasesPage(Page):
    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/releases.html"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        filters = ReleaseFilters(request.GET)
        found = list_releases(actor=self.actor, tenant=tenant).filter(**filters.lookups())
        rows = page_of(request, found.prefetch_related(*_SHOWN), ordering=("-made_at", "-pk"))
        lines = [(release, list(release.steps.all()), _outline(release)) for release in rows]
        facts = {"rows": rows, "lines": lines, "filters": filters, "is_filtered": bool(filters.lookups())}
        return self.show({**facts, "tenant": self.owner})


def _outline(release: Release) -> str:
    return standing_of(release, list(release.steps.all()), given=len(release.approvals.all()))


class ReleasePage(Page):
    """One release. What is under way asks for itself again; the page is as good when it is loaded anew."""

    actions = {"get": Action.VIEW_TENANT}
    template_name = "releases/release.html"

    def get(self, request: HttpRequest, tenant: str, alias: str, number: int) -> HttpResponse:
        release = get_release(actor=self.actor, tenant=tenant, alias=alias, number=number)
        return self.show({"tenant": self.owner, **facts_of(release, self.actor, wanted=request.GET.get("step", ""))})


def facts_of(release: Release, actor: Actor, *, wanted: str) -> Facts:
    """Everything that the page of a release shows; ``wanted`` is the step whose figures were asked for."""
    steps = list(release.steps.all())
    approvals = list(release.approvals.select_related("reviewer").order_by("at"))
    rollbacks = list(release.rollbacks.select_related("left__adapter__tenant").order_by("-asked_at")[:1])
    judged = _judged(steps, wanted)
    return {
        "release": release,
        "alias": release.alias,
        "steps": [_step(step, release) for step in steps],
        "approvals": approvals,
        "required": release.plan["approvals"],
        "standing": standing_of(release, steps, given=len(approvals), now=timezone.now()),
        "is_live": release.state in RUNNING_STATES or is_watched(rollbacks),
        "verbs": verbs_of(release, given=len(approvals)),
        "can_go_back": _can_go_back(release),
        "may_consent": _may_consent(release, actor, [approval.reviewer_id for approval in approvals]),
        "is_own": release.made_by_id == actor.person_id,
        "rollback": rollbacks[0] if rollbacks else None,
        "judged": judged,
        "metrics": metric_rows(judged.verdict if judged else None),
        "charts": charts_of(judged.course if judged else None),
    }


def _judged(steps: Sequence[ReleaseStep], wanted: str) -> ReleaseStep | None:
    """The step whose figures are shown: the one that was asked for, or else the last one that has some."""
    having = [step for step in steps if step.verdict]
    named = [step for step in having if str(step.index) == wanted]
    return next(iter(named or having[-1:]), None)


def _step(step: ReleaseStep, release: Release) -> Facts:
    return {
        "row": step,
        "kind": KINDS_OF_STEP[step.kind],
        "needs": needs_of(step.kind, step.spec),
        "state": STATES_OF_STEP[step.state],
        "look": LOOKS_OF_STEP[step.state],
        "is_now": step.index == release.step and release.state in ACTIVE_STATES,
    }


def _can_go_back(release: Release) -> bool:
    return release.state in ACTIVE_STATES or (release.state == ReleaseState.PROMOTED and brought_it(release))


def _may_consent(release: Release, actor: Actor, given_by: Sequence[int]) -> bool:
    """Whether it is this person's turn, as far as that isn't a question of roles."""
    is_open = release.state == ReleaseState.PENDING
    return is_open and actor.person_id != release.made_by_id and actor.person_id not in given_by
