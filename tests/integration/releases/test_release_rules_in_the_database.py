"""The rules of releases/sql/releases.sql hold against whoever writes SQL, whatever the code above does."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from registry.models import Version
from registry.services.withdrawals import yank_version
from registry.states import Role, VersionState
from releases.models import Alias, AliasSplit, Release, ReleaseApproval, ReleaseStep, ReleaseTemplate, Rollback
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import abort_release, pause_release, promote_release, start_release
from releases.services.templates import write_template
from releases.states import ACTIVE_STATES, ENDED_STATES, RELEASE_MOVES, STEP_MOVES, MoveKind, ReleaseState, StepState
from releases.transitions import move_alias
from tests.factories.registry import make_actor, make_adapter, make_member, make_version
from tests.factories.releases import SHORT_PLAN, begin_release, consent, make_alias, run_release

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

CANARY = 2


def refused(write: Any) -> str:
    """Run the write in a savepoint, deferred rules with it; it has to fail. Returns the database's words."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        write()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    return str(caught.value)


def run(sql: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def change(release: Release, **facts: Any) -> str:
    return refused(lambda: Release.objects.filter(pk=release.pk).update(**facts))


def change_step(step: ReleaseStep, **facts: Any) -> str:
    return refused(lambda: ReleaseStep.objects.filter(pk=step.pk).update(**facts))


def step_of(release: Release, index: int = 0) -> ReleaseStep:
    return ReleaseStep.objects.get(release=release, index=index)


@pytest.fixture
def release() -> Release:
    return begin_release()


# --- releases


def test_what_a_release_does_never_changes(release: Release) -> None:
    other = begin_release()
    facts: dict[str, Any] = {
        "alias": other.alias, "number": 9, "stable": other.stable, "stable_revision": 9,
        "candidate": other.candidate, "plan": {"approvals": 0}, "digest": "0" * 64, "reason": "another",
        "made_by": other.made_by, "made_at": timezone.now(),
    }  # fmt: skip
    for name, value in facts.items():
        assert "never changes" in change(release, **{name: value}, revision=2), name
    assert "never deleted" in refused(lambda: run("DELETE FROM releases_release WHERE id = %s", release.pk))


@pytest.mark.parametrize("was", list(ReleaseState))
@pytest.mark.parametrize("to", list(ReleaseState))
def test_the_database_holds_the_same_table_of_moves(was: ReleaseState, to: ReleaseState) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT release_may_move(%s, %s)", [was.value, to.value])
        row = cursor.fetchone()
    assert row is not None
    assert row[0] == (to in RELEASE_MOVES[was])


@pytest.mark.parametrize("state", list(ReleaseState))
def test_the_database_knows_which_states_are_over(state: ReleaseState) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT release_is_over(%s)", [state.value])
        row = cursor.fetchone()
    assert row is not None
    assert row[0] == (state in ENDED_STATES)
    assert row[0] != (state in ACTIVE_STATES)


def test_a_move_that_is_in_no_table_is_refused(release: Release) -> None:
    paused = {"state": "paused", "paused_state": "prewarming", "pause_kind": "gate"}
    assert "does not move from pending" in change(release, **paused, revision=2)
    ended = abort_release(actor=make_actor(), release=release)
    again = {"state": "pending", "revision": ended.revision + 1, "ended_at": None}
    assert "does not move from aborted" in change(release, **again)


def test_every_change_counts_once_and_a_look_does_not(release: Release) -> None:
    run_release(release)
    release.refresh_from_db()
    for revision in (release.revision, release.revision + 2, release.revision - 1):
        assert "counts once" in change(release, step=1, revision=revision)
    assert Release.objects.filter(pk=release.pk).update(sentence="Waits.", looked_at=timezone.now())


def test_no_step_comes_again_and_a_release_that_is_over_stays_so(release: Release) -> None:
    run_release(release, until=CANARY)
    release.refresh_from_db()
    assert "no step comes again" in change(release, step=0, revision=release.revision + 1)
    over = abort_release(actor=make_actor(), release=release)
    assert "stays as it is" in change(release, step=3, revision=over.revision + 1)


def test_a_pause_says_why_and_from_what(release: Release) -> None:
    run_release(release)
    release.refresh_from_db()
    wrong: list[dict[str, Any]] = [
        {"state": "paused"},
        {"state": "paused", "pause_kind": "gate"},
        {"state": "paused", "paused_state": "prewarming"},
        {"state": "paused", "pause_kind": "gate", "paused_state": "pending"},
        {"pause_kind": "gate", "paused_state": "prewarming"},
    ]
    for facts in wrong:
        assert "says why and from what" in change(release, **facts, revision=release.revision + 1)
    assert "release_pause_known" in change(
        release, state="paused", pause_kind="rain", paused_state="prewarming", revision=release.revision + 1
    )


def test_an_end_says_since_when(release: Release) -> None:
    assert "since when" in change(release, state="aborted", revision=2)
    assert "since when" in change(release, ended_at=timezone.now(), revision=2)


def test_a_release_begins_pending_where_its_alias_is_and_counts_on(release: Release) -> None:
    abort_release(actor=make_actor(), release=release)
    fresh = Release.objects.values().get(pk=release.pk)
    facts = {
        **fresh, "id": "0" * 32, "number": 2, "state": "pending", "revision": 1, "step": 0,
        "started_at": None, "ended_at": None,
    }  # fmt: skip
    other, approved = make_version(), make_version(adapter=release.alias.adapter)
    for name, value, words in (
        ("state", "prewarming", "begins as pending"),
        ("revision", 2, "begins as pending"),
        ("step", 1, "begins as pending"),
        ("number", 3, "does not follow"),
        ("number", 1, "does not follow"),
        ("stable_id", approved.pk, "begins at the version"),
        ("stable_revision", 2, "begins at the version"),
        ("candidate_id", other.pk, "approved version of its tenant"),
        ("candidate_id", make_version(adapter=release.alias.adapter, state=VersionState.YANKED).pk, "approved version"),
    ):
        assert words in refused(lambda facts=facts | {name: value}: Release.objects.create(**facts)), name
    assert "release_goes_somewhere" in refused(
        lambda: Release.objects.create(**facts | {"candidate_id": release.stable_id})
    )


def test_there_is_one_active_release_per_alias(release: Release) -> None:
    fresh = Release.objects.values().get(pk=release.pk)
    assert "release_one_active" in refused(lambda: Release.objects.create(**fresh | {"id": "0" * 32, "number": 2}))


def test_a_release_starts_with_its_approvals() -> None:
    release = begin_release(plan=SHORT_PLAN | {"approvals": 2})
    consent(release)
    step = step_of(release)
    begun = {"state": "running", "attempt": 1, "started_at": timezone.now()}

    def start() -> None:
        ReleaseStep.objects.filter(pk=step.pk).update(**begun)
        Release.objects.filter(pk=release.pk).update(state="prewarming", revision=2)

    assert "approvals" in refused(start)
    assert "approvals" in change(release, state="promoted", revision=2, ended_at=timezone.now())
    consent(release)
    start()


def test_the_state_is_that_of_the_step(release: Release) -> None:
    assert "no step that runs or ran last is shadowing" in change(release, state="shadowing", revision=2)
    assert "no step that runs or ran last is progressing" in change(release, state="progressing", revision=2)


@pytest.mark.parametrize("to", ["promoted", "aborted", "rolled_back"])
def test_a_release_that_is_over_has_no_step_before_it(release: Release, to: str) -> None:
    run_release(release, until=CANARY)
    release.refresh_from_db()
    words = change(release, state=to, revision=release.revision + 1, ended_at=timezone.now())
    assert "no step before it" in words


def test_a_release_is_promoted_when_every_step_passed_and_its_alias_moved(release: Release) -> None:
    now = timezone.now()
    over = {"state": "promoted", "revision": 2, "ended_at": now}
    assert "no step before it" in change(release, **over)
    ReleaseStep.objects.filter(release=release, kind="prewarm").update(state="ended", ended_at=now)
    ReleaseStep.objects.filter(release=release, state="waiting").update(state="skipped", ended_at=now)
    assert "every step has passed" in change(release, **over)
    whole = begin_release()
    ReleaseStep.objects.filter(release=whole).update(state="skipped", ended_at=now)
    assert "alias at the candidate" in change(whole, **over)


# --- steps


def test_what_a_step_does_never_changes(release: Release) -> None:
    step = step_of(release)
    for name, value in {"index": 9, "kind": "canary", "spec": {}, "release": begin_release()}.items():
        assert "never changes" in change_step(step, **{name: value}), name
    assert "never deleted" in refused(lambda: run("DELETE FROM releases_releasestep WHERE id = %s", step.pk))


@pytest.mark.parametrize("was", list(StepState))
@pytest.mark.parametrize("to", list(StepState))
def test_a_step_moves_as_the_table_says(release: Release, was: StepState, to: StepState) -> None:
    step = step_of(release)
    if was is not StepState.WAITING:
        start_release(actor=make_actor(), release=release)
    now = timezone.now()
    if was not in {StepState.WAITING, StepState.RUNNING}:
        ReleaseStep.objects.filter(pk=step.pk).update(state=was.value, ended_at=now)
    step.refresh_from_db()
    facts: dict[str, Any] = {"state": to.value, "ended_at": None if to in {"waiting", "running"} else now}
    if to is StepState.RUNNING:
        facts |= {"attempt": step.attempt + 1, "started_at": now}
    if to in STEP_MOVES[was]:
        assert ReleaseStep.objects.filter(pk=step.pk).update(**facts)
    elif was is not to:
        words = change_step(step, **facts)
        assert "does not move" in words or "stays as it is" in words


def test_a_step_begins_once_per_attempt(release: Release) -> None:
    step, now = step_of(release), timezone.now()
    running = {"state": "running", "started_at": now}
    assert "once per attempt" in change_step(step, **running)
    assert "once per attempt" in change_step(step, **running, attempt=2)
    assert "once per attempt" in change_step(step, state="running", attempt=1)
    assert "once per attempt" in change_step(step, attempt=1, started_at=now)
    start_release(actor=make_actor(), release=release)
    assert "once per attempt" in change_step(step, started_at=now)
    assert "once per attempt" in change_step(step, attempt=2)
    assert "once per attempt" in change_step(step, attempt=3, started_at=now)


def test_a_step_runs_when_all_before_it_have_passed_and_its_release_is_not_over(release: Release) -> None:
    start_release(actor=make_actor(), release=release)
    begun = {"state": "running", "attempt": 1, "started_at": timezone.now()}
    assert "all before it" in change_step(step_of(release, CANARY), **begun)
    ReleaseStep.objects.filter(release=release, index=0).update(state="passed", ended_at=timezone.now())
    assert "all before it" in change_step(step_of(release, CANARY), **begun)
    assert ReleaseStep.objects.filter(release=release, index=1).update(**begun)


def test_the_steps_of_a_release_are_made_with_it(release: Release) -> None:
    facts = {"kind": "canary", "spec": {}}
    assert "one after the other" in refused(lambda: ReleaseStep.objects.create(release=release, index=9, **facts))
    assert "no other, promotes" in refused(lambda: _begin_without_promotion(release))
    start_release(actor=make_actor(), release=release)
    assert "made with it" in refused(lambda: ReleaseStep.objects.create(release=release, index=4, **facts))


def _begin_without_promotion(release: Release) -> None:
    abort_release(actor=make_actor(), release=release)
    fresh = Release.objects.values().get(pk=release.pk)
    facts = {"number": 2, "state": "pending", "revision": 1, "started_at": None, "ended_at": None}
    made = Release.objects.create(**fresh | {"id": "0" * 32} | facts)
    ReleaseStep.objects.create(release=made, index=0, kind="prewarm", spec={})


# --- approvals, rollbacks, templates


def test_four_eyes_hold_in_the_database_too() -> None:
    release = begin_release(plan=SHORT_PLAN | {"approvals": 1})
    reviewer = make_member(release.alias.tenant, Role.REVIEWER).person_id
    facts = {"release": release, "digest": release.digest, "at": timezone.now()}
    make = ReleaseApproval.objects.create
    assert "of their own" in refused(lambda: make(**facts, reviewer_id=release.made_by_id))
    assert "names the plan" in refused(lambda: make(**facts | {"digest": "0" * 64}, reviewer_id=reviewer))
    approval = make(**facts, reviewer_id=reviewer)
    assert "release_approval_once" in refused(lambda: make(**facts, reviewer_id=reviewer))
    same = ReleaseApproval.objects.filter(pk=approval.pk)
    assert "never changes" in refused(lambda: same.update(comment="no"))
    assert "never changes" in refused(lambda: run("DELETE FROM releases_releaseapproval WHERE id = %s", approval.pk))
    start_release(actor=make_actor(), release=release)
    late = make_member(release.alias.tenant, Role.REVIEWER).person_id
    assert "not started" in refused(lambda: make(**facts, reviewer_id=late))


def test_a_rollback_stays_what_it_was_but_for_how_long_it_took(release: Release) -> None:
    roll_back_release(actor=make_actor(), release=release)
    rows = Rollback.objects.filter(release=release)
    for name, value in {"asked_at": timezone.now(), "left": release.stable, "revision": 9, "release": None}.items():
        assert "never changes" in refused(lambda name=name, value=value: rows.update(**{name: value}))
    assert "never changes" in refused(lambda: run("DELETE FROM releases_rollback"))
    assert rows.update(last_answer_at=timezone.now(), strays=2, settled_at=timezone.now())


def test_an_edition_of_a_template_stays_and_they_count_on() -> None:
    alias = make_alias()
    manager = make_member(alias.tenant, Role.RELEASE_MANAGER)
    written = write_template(actor=manager, tenant=alias.tenant, name="quick", text="approvals: 0")
    rows = ReleaseTemplate.objects.filter(pk=written.pk)
    assert "never changes" in refused(lambda: rows.update(text="approvals: 1"))
    assert "never changes" in refused(lambda: run("DELETE FROM releases_releasetemplate"))
    facts = ReleaseTemplate.objects.values().get(pk=written.pk) | {"id": None, "number": 3}
    assert "without gaps" in refused(lambda: ReleaseTemplate.objects.create(**facts))


# --- alias, split and versions while a release is active


def move(alias: Alias, to: Version) -> None:
    whole = Alias.objects.select_related("tenant").get(pk=alias.pk)
    move_alias(whole, actor=make_actor(), to=to, kind=MoveKind.MOVE, reason="")


def test_nothing_else_moves_or_splits_the_alias_of_an_active_release(release: Release) -> None:
    alias, other = release.alias, make_version(adapter=release.alias.adapter)
    assert "nothing else" in refused(lambda: move(alias, other))
    facts = {"alias": alias, "salt": "x", "changed_at": timezone.now()}
    assert "nothing else" in refused(lambda: AliasSplit.objects.create(**facts, candidate=other))
    assert "nothing else" in refused(
        lambda: AliasSplit.objects.create(**facts, candidate=release.candidate, shadow=other)
    )
    run_release(release, until=CANARY)
    assert "nothing else" in refused(lambda: AliasSplit.objects.filter(alias=alias).update(candidate=other))


def test_a_withdrawn_version_is_no_candidate_any_more(release: Release) -> None:
    run_release(release, until=CANARY)
    rows = Version.objects.filter(pk=release.candidate_id)
    for state in ("yanked", "revoked"):
        assert "no candidate any more" in refused(lambda state=state: rows.update(state=state))
    sibling = make_adapter(tenant=release.alias.tenant, base_model=release.alias.adapter.base_model)
    unused = make_version(adapter=sibling)
    assert yank_version(actor=make_actor(), version=unused, reason="old").state == "yanked"


def test_what_the_services_do_passes_every_deferred_rule(release: Release) -> None:
    run_release(release, until=CANARY)
    pause_release(actor=make_actor(), release=release)
    promote_release(actor=make_actor(), release=release)
    roll_back_release(actor=make_actor(), release=release)
    run("SET CONSTRAINTS ALL IMMEDIATE")
    run("SET CONSTRAINTS ALL DEFERRED")
