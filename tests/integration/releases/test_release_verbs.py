"""What people and the controller do to a release, step by step, and what each leaves behind."""

from typing import Any

import pytest

from registry.actors import Actor
from registry.errors import IllegalTransition, PermissionDenied, StaleState
from registry.models import AuditRecord
from registry.states import Role
from releases.errors import RevisionChanged, WrongReleaseState
from releases.models import Alias, AliasSplit, Release
from releases.selectors import lock_release
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.steps import hold_release, pass_step, present_step
from releases.services.releases.verbs import (
    abort_release,
    pause_release,
    promote_release,
    resume_release,
    retry_release,
    start_release,
)
from releases.states import PauseKind, ReleaseState, StepState
from releases.transitions import move_release, move_step, note_look
from tests.factories.registry import make_actor, make_member
from tests.factories.releases import SHORT_PLAN, begin_release, make_alias, run_release, take_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

CANARY = 2
WHOLE_PLAN = {
    "approvals": 0,
    "shadow": {"percent": 20.0},
    "canary": [{"tenants": ["acme"]}, {"tenants": ["acme"], "percent": 12.5, "gate": True}],
}


@pytest.fixture
def release() -> Release:
    return begin_release()


@pytest.fixture
def manager(release: Release) -> Actor:
    return make_member(release.alias.tenant, Role.RELEASE_MANAGER)


def steps(release: Release) -> list[str]:
    return [step.state for step in release.steps.all()]


def actions() -> list[str]:
    found = AuditRecord.objects.filter(object__kind__in=["release", "alias"]).order_by("seq")
    return [action.removeprefix("tenant:") for action in found.values_list("action", flat=True)]


def split_of(release: Release) -> tuple[Any, ...] | None:
    split = AliasSplit.objects.filter(alias=release.alias_id).first()
    if split is None:
        return None
    return split.candidate_id, split.basis_points, split.allow, split.shadow_id, split.shadow_basis_points


def hold(release: Release, kind: PauseKind) -> Release:
    return hold_release(lock_release(release.pk), actor=make_actor(), pause=kind, sentence="It waits.")


def test_a_start_begins_the_first_step_and_has_the_controller_look(
    release: Release, manager: Actor, sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        started = start_release(actor=manager, release=release, reason="now", expected_revision=1)
    assert (started.state, started.revision, started.step) == (ReleaseState.PREWARMING, 2, 0)
    assert started.started_at
    first = present_step(started)
    assert (first.state, first.attempt, first.kind) == (StepState.RUNNING, 1, "prewarm")
    assert first.started_at
    assert ("workers.tasks.steer_release", {"release_id": str(release.pk)}) in sent
    assert actions()[-1] == "release:start"


def test_a_start_sent_twice_starts_once(release: Release, manager: Actor) -> None:
    for _time in range(2):
        start_release(actor=manager, release=release, expected_revision=1)
    assert actions().count("release:start") == 1


def test_each_step_has_its_share_with_one_salt_and_grows(manager: Actor) -> None:
    release = run_release(begin_release(plan=WHOLE_PLAN))
    candidate = release.candidate_id
    expected: list[tuple[Any, ...]] = [
        ("prewarming", None),
        ("shadowing", (candidate, 0, [], candidate, 2000)),
        ("progressing", (candidate, 0, ["acme"], None, 0)),
        ("progressing", (candidate, 1250, ["acme"], None, 0)),
    ]
    found, salts = [], set()
    for _step in expected:
        release = take_on(release)
        found.append((release.state, split_of(release)))
        salts |= set(AliasSplit.objects.values_list("salt", flat=True))
    assert found == expected
    assert len(salts) == 1
    assert steps(release) == ["passed"] * 4 + ["running", "waiting"]


def test_a_gate_waits_for_a_person_who_lets_the_next_step_begin(manager: Actor) -> None:
    release = run_release(begin_release(plan=WHOLE_PLAN), until=4)
    release = take_on(release)
    assert (release.state, release.pause_kind, release.paused_state, release.step) == (
        "paused", "gate", "progressing", 5,
    )  # fmt: skip
    assert "gate" in release.sentence
    assert split_of(release)
    with pytest.raises(WrongReleaseState):
        retry_release(actor=make_actor(), release=release)
    resumed = resume_release(actor=make_actor(), release=release)
    assert (resumed.state, resumed.pause_kind, resumed.paused_state) == ("progressing", "", "")
    assert steps(resumed) == ["passed"] * 5 + ["waiting"]


def test_a_pause_keeps_the_share_and_a_resume_goes_on_with_the_same_attempt(release: Release, manager: Actor) -> None:
    run_release(release, until=CANARY)
    paused = pause_release(actor=manager, release=release)
    assert (paused.state, paused.pause_kind, paused.paused_state) == ("paused", "person", "progressing")
    assert manager.name in paused.sentence
    split = split_of(release)
    assert split
    began = present_step(paused)
    assert pause_release(actor=manager, release=release).revision == paused.revision
    resumed = resume_release(actor=manager, release=release, expected_revision=paused.revision)
    step = present_step(resumed)
    assert (step.state, step.attempt, step.started_at) == ("running", 1, began.started_at)
    assert began.resumed_at is None
    assert step.resumed_at
    assert resume_release(actor=manager, release=release).revision == resumed.revision
    assert split_of(release) == split


def test_a_held_step_goes_on_where_it_was_and_a_retry_begins_another_attempt(release: Release) -> None:
    run_release(release, until=CANARY)
    first = present_step(hold(release, PauseKind.HELD))
    resume_release(actor=make_actor(), release=release)
    hold(release, PauseKind.HELD)
    retried = retry_release(actor=make_actor(), release=release)
    again = present_step(retried)
    assert (retried.state, again.attempt, again.verdict, again.resumed_at) == ("progressing", 2, None, None)
    assert first.started_at
    assert again.started_at
    assert again.started_at > first.started_at
    assert retry_release(actor=make_actor(), release=release).revision == retried.revision
    assert actions()[-4:] == ["release:pause", "release:resume", "release:pause", "release:retry"]


def test_trouble_takes_a_retry_and_not_a_resume(release: Release) -> None:
    run_release(release)
    hold(release, PauseKind.TROUBLE)
    with pytest.raises(WrongReleaseState, match="It waits"):
        resume_release(actor=make_actor(), release=release)
    assert retry_release(actor=make_actor(), release=release).state == ReleaseState.PREWARMING


def test_a_paused_release_can_come_to_wait_for_something_else(release: Release) -> None:
    run_release(release, until=CANARY)
    hold(release, PauseKind.PERSON)
    held = hold(release, PauseKind.TROUBLE)
    assert (held.state, held.pause_kind, held.paused_state) == ("paused", "trouble", "progressing")


def test_the_last_step_passed_means_the_alias_stands_at_the_candidate(release: Release, manager: Actor) -> None:
    promoted = promote_release(actor=manager, release=run_release(release, until=CANARY), reason="good enough")
    alias = Alias.objects.get(pk=release.alias_id)
    assert (promoted.state, alias.version_id, alias.revision, alias.moved_by) == (
        "promoted", release.candidate_id, 2, "move",
    )  # fmt: skip
    assert split_of(release) is None
    assert steps(promoted) == ["passed", "passed", "skipped", "passed"]
    assert promoted.ended_at
    assert actions()[-3:] == ["alias:clear_split", "alias:move", "release:promote"]
    assert promote_release(actor=manager, release=release).revision == promoted.revision
    assert Alias.objects.get(pk=alias.pk).revision == 2


@pytest.mark.parametrize("pause", [None, *PauseKind])
def test_a_promotion_skips_to_the_end_from_wherever_the_release_is(release: Release, pause: PauseKind | None) -> None:
    if pause is not None:
        run_release(release, until=CANARY)
        hold(release, pause)
    assert promote_release(actor=make_actor(), release=release).state == ReleaseState.PROMOTED
    assert {"waiting", "running", "ended"}.isdisjoint(steps(release))


def test_an_abort_leaves_the_alias_where_it_is_and_its_version_answers_all(release: Release, manager: Actor) -> None:
    run_release(release, until=CANARY)
    aborted = abort_release(actor=manager, release=release, reason="not now")
    alias = Alias.objects.get(pk=release.alias_id)
    assert (aborted.state, aborted.sentence, alias.revision) == ("aborted", "not now", 1)
    assert split_of(release) is None
    assert steps(aborted) == ["passed", "passed", "ended", "ended"]
    assert abort_release(actor=manager, release=release).revision == aborted.revision


VERBS = {
    "start": start_release, "pause": pause_release, "resume": resume_release, "retry": retry_release,
    "promote": promote_release, "abort": abort_release,
}  # fmt: skip
FITS = {
    "pending": {"start", "promote", "abort"},
    "prewarming": set(VERBS),
    "progressing": set(VERBS),
    "paused": set(VERBS),
    "promoted": {"promote"},
    "aborted": {"abort"},
    "rolled_back": set(),
}


def bring_to(state: str) -> Release:
    release = begin_release()
    if state == "prewarming":
        run_release(release)
    elif state in {"progressing", "paused"}:
        run_release(release, until=CANARY)
    if state == "paused":
        pause_release(actor=make_actor(), release=release)
    elif state == "promoted":
        promote_release(actor=make_actor(), release=release)
    elif state == "aborted":
        abort_release(actor=make_actor(), release=release)
    elif state == "rolled_back":
        roll_back_release(actor=make_actor(), release=release)
    return release


@pytest.mark.parametrize("state", list(FITS))
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_verb_fits_its_states_and_is_refused_in_all_others(verb: str, state: str) -> None:
    release = bring_to(state)
    if verb in FITS[state]:
        VERBS[verb](actor=make_actor(), release=release)
        return
    before = Release.objects.values().get(pk=release.pk)
    with pytest.raises(WrongReleaseState, match=state):
        VERBS[verb](actor=make_actor(), release=release)
    assert Release.objects.values().get(pk=release.pk) == before


@pytest.mark.parametrize(("verb", "state"), [
    ("start", "pending"), ("pause", "progressing"), ("resume", "paused"), ("retry", "paused"),
    ("promote", "progressing"), ("abort", "progressing"),
])  # fmt: skip
def test_a_verb_holds_for_the_revision_that_its_caller_saw(verb: str, state: str) -> None:
    release = bring_to(state)
    with pytest.raises(RevisionChanged):
        VERBS[verb](actor=make_actor(), release=release, expected_revision=99)


WHO = {
    "start": {Role.RELEASE_MANAGER}, "promote": {Role.RELEASE_MANAGER},
    **{verb: {Role.RELEASE_MANAGER, Role.OPERATOR} for verb in ("pause", "resume", "retry", "abort")},
}  # fmt: skip


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_role_has_exactly_its_verbs(release: Release, verb: str, role: Role) -> None:
    if verb not in FITS["pending"]:
        run_release(release)
    actor = make_member(release.alias.tenant, role)
    if role in WHO[verb]:
        VERBS[verb](actor=actor, release=release)
    else:
        with pytest.raises(PermissionDenied):
            VERBS[verb](actor=actor, release=release)


# --- what the controller keeps


def test_a_look_is_kept_and_changes_neither_state_nor_revision(release: Release) -> None:
    running = run_release(release, until=CANARY)
    step, now = present_step(running), running.made_at
    note_look(running, step, sentence="Too few.", verdict={"outcome": "inconclusive"}, looked_at=now)
    release.refresh_from_db()
    kept = present_step(release)
    assert (release.sentence, release.looked_at, release.revision) == ("Too few.", now, running.revision)
    assert (kept.verdict, kept.judged_at, kept.sentence) == ({"outcome": "inconclusive"}, now, "Too few.")
    note_look(release, kept, sentence="Still.", looked_at=now)
    assert present_step(release).verdict == {"outcome": "inconclusive"}


def test_a_look_at_what_has_changed_meanwhile_is_refused(release: Release) -> None:
    seen = run_release(release, until=CANARY)
    step = present_step(seen)
    pause_release(actor=make_actor(), release=release)
    with pytest.raises(StaleState):
        note_look(seen, step, sentence="Fine.", looked_at=seen.made_at)


def test_who_moves_what_has_moved_meanwhile_is_refused(release: Release) -> None:
    seen = run_release(release)
    step = present_step(seen)
    take_on(seen)
    with pytest.raises(StaleState):
        move_release(seen, was=ReleaseState.PREWARMING, to=ReleaseState.PAUSED)
    with pytest.raises(StaleState):
        move_step(step, was=StepState.RUNNING, to=StepState.PASSED)


def test_moves_that_are_in_no_table_are_refused(release: Release) -> None:
    with pytest.raises(IllegalTransition):
        move_release(release, was=ReleaseState.PENDING, to=ReleaseState.PAUSED)
    with pytest.raises(IllegalTransition):
        move_release(release, was=ReleaseState.PENDING, to=ReleaseState.PENDING)
    with pytest.raises(IllegalTransition):
        move_step(present_step(release), was=StepState.WAITING, to=StepState.PASSED)


def test_a_step_that_has_passed_tells_of_its_verdict(release: Release) -> None:
    running = lock_release(run_release(release, until=CANARY).pk)
    note_look(running, present_step(running), sentence="Same.", verdict={"outcome": "pass"}, looked_at=running.made_at)
    step = pass_step(running, actor=make_actor(), sentence="As good.")
    assert (step.state, step.sentence, step.verdict) == ("passed", "As good.", {"outcome": "pass"})
    record = AuditRecord.objects.get(action="tenant:release:pass_step", after__step__index=CANARY)
    assert record.after
    assert record.after["verdict"] == {"outcome": "pass"}


def test_every_change_of_a_release_has_one_record() -> None:
    alias = make_alias()
    release = run_release(begin_release(alias=alias, plan=SHORT_PLAN), until=CANARY)
    promote_release(actor=make_actor(), release=release)
    assert actions() == [
        "alias:set", "release:make", "release:start", "release:pass_step", "release:begin_step",
        "release:pass_step", "alias:set_split", "release:begin_step",
        "alias:clear_split", "alias:move", "release:promote",
    ]  # fmt: skip
    changes = AuditRecord.objects.filter(object__kind="release").exclude(action__endswith=":make").order_by("seq")
    assert [record.after["revision"] for record in changes if record.after] == list(range(2, 8))
