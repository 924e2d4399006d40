from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import translation

from registry.states import Role
from releases.models import Release
from releases.selectors import lock_release
from releases.services.releases.steps import hold_release
from releases.states import PauseKind, ReleaseState
from tests.factories.judged import note_verdict, window_of
from tests.factories.registry import make_actor, make_version
from tests.factories.releases import SHORT_PLAN, begin_release, consent, make_alias, run_release, take_on
from tests.web.conftest import SignIn, filled
from tests.web.reading import MOST_QUERIES, queries, text_of
from tests.web.releases.conftest import Stage

pytestmark = pytest.mark.django_db
NEEDS_ONE = {**SHORT_PLAN, "approvals": 1}


def begin(stage: Stage, *, approvals: int = 0) -> Release:
    return begin_release(alias=stage.alias, candidate=stage.new, plan={**SHORT_PLAN, "approvals": approvals})


def address_of(stage: Stage, release: Release) -> str:
    return f"{stage.address}/{release.number}"


def test_the_list_shows_the_newest_first_and_narrows_by_state_and_alias(stage: Stage, viewer: Client) -> None:
    first = begin(stage)
    other = make_alias(version=make_version(adapter=stage.old.adapter))
    run_release(begin_release(alias=other, candidate=stage.new))
    assert [row.pk for row in viewer.get(stage.releases).context["rows"]][1] == first.pk
    assert [row.pk for row in viewer.get(f"{stage.releases}?alias=support").context["rows"]] == [first.pk]
    assert [row.pk for row in viewer.get(f"{stage.releases}?state=pending").context["rows"]] == [first.pk]
    assert len(viewer.get(f"{stage.releases}?state=active").context["rows"]) == 2
    assert len(viewer.get(f"{stage.releases}?state=promoted").context["rows"]) == 0


def test_the_list_says_how_each_release_stands_in_the_readers_language(stage: Stage, viewer: Client) -> None:
    begin(stage, approvals=1)
    assert "It waits for the approval of one more person." in text_of(viewer.get(stage.releases))
    viewer.cookies["lorekeeper_language"] = "zh-hans"
    assert "还需 1 人批准" in text_of(viewer.get(stage.releases))


def test_a_release_is_made_from_a_template(stage: Stage, manager: Client) -> None:
    address = f"{stage.releases}/new?alias=support"
    answer = filled(manager, address, candidate=stage.target, reason="softer")
    release = Release.objects.get()
    assert answer["Location"] == address_of(stage, release)
    assert (release.candidate_id, release.reason, release.state) == (stage.new.pk, "softer", "pending")
    assert len(release.plan["canary"]) == 2


def test_an_alias_behind_those_that_are_offered_is_chosen_too(
    stage: Stage, manager: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("releases.web.making._OFFERED_ALIASES", 1)
    make_alias(version=stage.old, name="a-first")
    address = f"{stage.releases}/new"
    shown = manager.get(address).content.decode()
    assert '<option value="a-first">' in shown
    assert '<option value="support">' not in shown
    assert filled(manager, address, alias="support", candidate=stage.target).status_code == 302
    assert Release.objects.get().alias == stage.alias
    unknown = filled(manager, address, alias="nobody", candidate=stage.target)
    assert unknown.status_code == 422
    assert "has no alias named nobody." in text_of(unknown)


def test_what_a_release_would_do_is_shown_with_its_digest_before_it_is_made(stage: Stage, manager: Client) -> None:
    address = f"{stage.releases}/new?alias=support"
    plan = "canary: [{percent: 5, gate: true}]"
    looked = filled(manager, address, candidate=stage.target, plan_text=plan, look="1")
    assert looked.status_code == 200
    assert not Release.objects.exists()
    assert "then it waits for a person" in text_of(looked)
    filled(manager, address, candidate=stage.target, plan_text=plan)
    assert looked.context["digest"] == Release.objects.get().digest


@pytest.mark.parametrize("button", [{}, {"look": "1"}])
@pytest.mark.parametrize(
    ("plan", "fault"),
    [("canary: [{percent: 500}]", "canary[0].percent"), ("canary: [", "YAML"), ("- a list", "mapping")],
)
def test_what_is_wrong_in_a_plan_stands_next_to_it(
    plan: str, fault: str, button: dict[str, str], stage: Stage, manager: Client
) -> None:
    address = f"{stage.releases}/new?alias=support"
    answer = filled(manager, address, candidate=stage.target, plan_text=plan, **button)
    assert answer.status_code == 422
    assert fault in str(answer.context["form"].errors["plan_text"])
    assert not Release.objects.exists()


@pytest.mark.parametrize("candidate", ["nowhere@v9", "v2", "<script>@x", ""])
def test_a_candidate_that_there_is_not_is_said_next_to_the_field(candidate: str, stage: Stage, manager: Client) -> None:
    answer = filled(manager, f"{stage.releases}/new?alias=support", candidate=candidate)
    assert answer.status_code == 422
    assert "candidate" in answer.context["form"].errors
    assert b"<script>@x" not in answer.content


def test_a_release_from_an_alias_that_was_moved_since_is_refused(stage: Stage, manager: Client) -> None:
    address = f"{stage.releases}/new?alias=support"
    shown = manager.get(address).context["form"]
    third = make_version(adapter=stage.old.adapter)
    filled(manager, f"{stage.address}/move", version=f"{third.adapter.name}@{third.name}")
    sent = {"alias": "support", "candidate": stage.target, "template": "default", "seen": shown["seen"].value()}
    answer = manager.post(address, sent)
    assert answer.status_code == 422
    assert "somebody moved it" in text_of(answer)


def test_the_plan_is_a_timeline_with_what_each_step_needs(stage: Stage, viewer: Client) -> None:
    release = run_release(begin(stage), until=2)
    shown = viewer.get(address_of(stage, release))
    assert [step["row"].state for step in shown.context["steps"]] == ["passed", "passed", "running", "waiting"]
    assert "10 % of requests" in text_of(shown)
    assert shown.content.count(b'aria-current="step"') == 1


def test_canary_and_stable_stand_beside_each_other_with_the_verdicts_sentence(stage: Stage, viewer: Client) -> None:
    release = note_verdict(run_release(begin(stage), until=2), window=window_of(failed=2, slower_ms=30))
    shown = viewer.get(address_of(stage, release))
    errors = next(row for row in shown.context["metrics"] if row.name == "Errors")
    assert (errors.canary, errors.stable, errors.difference) == ("5 %", "0 %", "+5 points")
    assert errors.sentence in text_of(shown).replace("\u2019", "'")
    titles = [chart.title for chart in shown.context["charts"]]
    assert "Errors (%)" in titles
    assert "Shadow agreement (%)" in titles


def test_figures_of_an_earlier_step_can_be_looked_at(stage: Stage, viewer: Client) -> None:
    release = run_release(begin(stage), until=2)
    note_verdict(release)
    take_on(release)
    shown = viewer.get(f"{address_of(stage, release)}?step=2")
    assert shown.context["judged"].index == 2
    assert viewer.get(f"{address_of(stage, release)}?step=nonsense").context["judged"].index == 2


def test_without_figures_the_page_says_when_they_come(stage: Stage, viewer: Client) -> None:
    shown = viewer.get(address_of(stage, begin(stage)))
    assert "Nothing was measured yet" in text_of(shown)
    assert shown.context["charts"] == []


def test_a_release_is_approved_by_somebody_else_bound_to_the_digest(stage: Stage, sign_in: SignIn) -> None:
    release = begin(stage, approvals=1)
    reviewer = sign_in(stage.person(Role.REVIEWER))
    page = f"{address_of(stage, release)}/approve"
    assert release.digest in text_of(reviewer.get(page))
    assert reviewer.post(page, {"digest": "0" * 64}).status_code == 422
    assert not release.approvals.exists()
    assert filled(reviewer, page, comment="fine").status_code == 302
    assert release.approvals.get().comment == "fine"


def test_who_made_a_release_is_not_offered_to_approve_it_and_is_refused(stage: Stage, sign_in: SignIn) -> None:
    person = stage.person(Role.RELEASE_MANAGER)
    release = begin_release(alias=stage.alias, candidate=stage.new, plan=NEEDS_ONE, actor=make_actor(person))
    browser = sign_in(person)
    shown = browser.get(address_of(stage, release))
    assert "/approve" not in shown.content.decode()
    assert "You made it" in text_of(shown)
    answer = browser.post(f"{address_of(stage, release)}/approve", {"digest": release.digest})
    assert answer.status_code == 409
    assert not release.approvals.exists()


def verbs_on(browser: Client, address: str) -> set[str]:
    page = browser.get(address).content.decode()
    verbs = ("start", "pause", "resume", "retry", "promote", "abort", "approve", "rollback")
    return {verb for verb in verbs if f'href="{address}/{verb}"' in page}


def test_only_the_verbs_that_the_release_takes_are_offered(stage: Stage, manager: Client) -> None:
    release = begin(stage, approvals=1)
    address = address_of(stage, release)
    assert verbs_on(manager, address) == {"approve", "abort", "rollback"}
    consent(release)
    assert verbs_on(manager, address) >= {"start", "promote", "abort", "rollback"}
    run_release(release, until=2)
    assert verbs_on(manager, address) == {"pause", "promote", "abort", "rollback"}


@pytest.mark.parametrize(
    ("pause", "verbs"),
    [
        (PauseKind.PERSON, {"resume", "retry"}),
        (PauseKind.GATE, {"resume"}),
        (PauseKind.HELD, {"resume", "retry"}),
        (PauseKind.TROUBLE, {"retry"}),
    ],
)
def test_how_a_paused_release_goes_on_depends_on_why(
    pause: PauseKind, verbs: set[str], stage: Stage, manager: Client
) -> None:
    release = lock_release(run_release(begin(stage), until=2).pk)
    hold_release(release, actor=make_actor(), pause=pause, sentence="It waits.")
    assert verbs_on(manager, address_of(stage, release)) - {"promote", "abort", "rollback"} == verbs


def test_a_viewer_is_offered_no_verb(stage: Stage, viewer: Client) -> None:
    assert verbs_on(viewer, address_of(stage, run_release(begin(stage), until=2))) == set()


def test_a_release_is_started_paused_resumed_and_promoted(stage: Stage, manager: Client) -> None:
    release = begin(stage)
    address = address_of(stage, release)

    def state() -> str:
        return Release.objects.get().state

    assert filled(manager, f"{address}/start").status_code == 302
    assert state() == "prewarming"
    assert filled(manager, f"{address}/pause", reason="lunch").status_code == 302
    assert state() == "paused"
    assert filled(manager, f"{address}/resume").status_code == 302
    assert state() == "prewarming"
    assert "for everybody, at once" in text_of(manager.get(f"{address}/promote"))
    assert filled(manager, f"{address}/promote").status_code == 302
    assert state() == "promoted"
    stage.alias.refresh_from_db()
    assert stage.alias.version_id == stage.new.pk


def test_a_second_click_is_harmless(stage: Stage, manager: Client) -> None:
    release = begin(stage)
    address = f"{address_of(stage, release)}/start"
    seen = {"revision": release.revision}
    assert [manager.post(address, seen).status_code for _click in range(2)] == [302, 302]
    assert Release.objects.get().revision == release.revision + 1


def test_a_verb_on_a_release_that_was_changed_meanwhile_says_so(stage: Stage, manager: Client) -> None:
    release = run_release(begin(stage), until=2)
    answer = manager.post(f"{address_of(stage, release)}/abort", {"revision": release.revision - 1})
    assert answer.status_code == 422
    assert "changed meanwhile" in text_of(answer)
    assert Release.objects.get().state == ReleaseState.PROGRESSING


def test_the_page_asks_for_itself_again_only_while_something_goes_on(stage: Stage, viewer: Client) -> None:
    release = begin(stage)
    address = address_of(stage, release)
    assert b"hx-trigger" not in viewer.get(address).content
    run_release(release, until=2)
    assert b'hx-trigger="every 3s"' in viewer.get(address).content
    take_on(Release.objects.get())
    take_on(Release.objects.get())
    assert Release.objects.get().state == ReleaseState.PROMOTED
    assert b"hx-trigger" not in viewer.get(address).content


def test_what_people_and_models_wrote_stays_text(stage: Stage, viewer: Client) -> None:
    release = run_release(begin(stage), until=2)
    note_verdict(release, sentence="<img src=x onerror=alert(1)> \u202egnp")
    page = viewer.get(address_of(stage, release)).content.decode()
    assert "<img src=x" not in page
    assert 'dir="auto"' in page


def test_records_are_in_english_whoever_made_them(stage: Stage, manager: Client) -> None:
    manager.cookies["lorekeeper_language"] = "zh-hans"
    release = run_release(begin(stage), until=2)
    filled(manager, f"{address_of(stage, release)}/pause")
    assert Release.objects.get().sentence.endswith("paused it; it waits for somebody to resume it.")
    with translation.override("zh-hans"):
        assert "有人暂停了它" in text_of(manager.get(address_of(stage, release)))


@pytest.mark.parametrize(
    "address",
    [
        lambda stage: stage.releases,
        lambda stage: f"{stage.address}/1",
        lambda stage: f"{stage.releases}/aliases",
        lambda stage: stage.address,
        lambda stage: f"{stage.address}/rollbacks",
        lambda stage: f"{stage.releases}/templates",
        lambda stage: f"{stage.releases}/templates/default",
        lambda stage: f"{stage.releases}/new?alias=support",
        lambda stage: f"{stage.address}/1/approve",
        lambda stage: f"{stage.address}/rollback",
    ],
)
def test_a_page_asks_the_database_no_more_than_it_may(
    address: Callable[[Stage], str], stage: Stage, manager: Client
) -> None:
    note_verdict(run_release(begin(stage), until=2))
    for _more in range(3):
        begin_release(alias=make_alias(version=make_version(adapter=stage.old.adapter)), candidate=stage.new)
    assert queries(manager, address(stage)) <= MOST_QUERIES
