"""The controller of releases, with a window and a warm-up that the test makes up, and everything else as it is."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from registry.models import AuditRecord
from releases.errors import WrongReleaseState
from releases.judge.facts import Side, Sketch, Slice, Window
from releases.models import AliasSplit, Release, ReleaseStep, Rollback
from releases.ports import PORTS, Departure, Evaluation, Figures, LastAnswers, Traffic, Warmth
from releases.services import departures
from releases.services.departures import settle_departures
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import pause_release, promote_release, resume_release, retry_release
from releases.services.steering import releases_to_steer, steer_release
from releases.states import PauseKind, ReleaseState, StepState
from releases.transitions import move_release
from tests.factories.registry import make_actor
from tests.factories.releases import begin_release, run_release

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

PLAN: dict[str, Any] = {
    "approvals": 0,
    "prewarm": {"nodes": 1, "longest_minutes": 15.0},
    "shadow": {"percent": 20.0, "min_minutes": 0.0, "min_samples": 100},
    "canary": [{"percent": 10.0, "min_minutes": 0.0, "min_samples": 100, "gate": True}],
    "judge": {"slice_s": 5.0},
}
PREWARM, EVALUATE, SHADOW, CANARY, LAST = range(5)


def slices(*, failed: int = 0, ms: float = 100.0, requests: int = 500, number: int = 6) -> Window:
    def side(errors: int, slowness: float) -> Side:
        times = Sketch.of([slowness] * requests)
        return Side(requests=requests, errors=errors, ttft=times, total=times, cost=times)

    return Window(slices=tuple(Slice(canary=side(failed, ms), stable=side(0, 100.0)) for _ in range(number)))


class World:
    """What the ports say, and how far the clock is ahead."""

    ahead = timedelta()

    def __init__(self) -> None:
        self.warmth = Warmth(ready=1, wanted=1)
        self.figures = Evaluation(Figures.NONE, "There are no figures.")
        self.window: Window | None = slices()
        self.asked: list[Traffic] = []
        self.cooled: list[Any] = []
        self.answers = LastAnswers(None, 0)
        self.departures: list[Departure] = []

    def count(self, traffic: Traffic) -> Window | None:
        self.asked.append(traffic)
        return self.window

    def depart(self, departure: Departure) -> LastAnswers:
        self.departures.append(departure)
        return self.answers


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made, now = World(), timezone.now
    monkeypatch.setattr(World, "ahead", timedelta())
    monkeypatch.setattr(timezone, "now", lambda: now() + World.ahead)
    monkeypatch.setattr(PORTS, "warm_up", lambda **_facts: made.warmth)
    monkeypatch.setattr(PORTS, "evaluation", lambda **_facts: made.figures)
    monkeypatch.setattr(PORTS, "window", made.count)
    monkeypatch.setattr(PORTS, "cool", lambda **facts: made.cooled.append(facts["version_id"]))
    monkeypatch.setattr(PORTS, "last_answers", made.depart)
    return made


@pytest.fixture
def release(world: World) -> Release:
    return run_release(begin_release(plan=PLAN))


def steer(release: Release, *, times: int = 1) -> Release:
    """So many changes, each of which has to be one."""
    for _time in range(times):
        assert steer_release(release_id=release.pk)
    return Release.objects.get(pk=release.pk)


def stay(release: Release) -> Release:
    assert not steer_release(release_id=release.pk)
    return Release.objects.get(pk=release.pk)


def pass_time(*, seconds: float = 60) -> None:
    """The database's guards let nobody set times back, so the clock goes on instead."""
    World.ahead += timedelta(seconds=seconds)


def at_canary(release: Release) -> Release:
    """The canary has begun, and its first slices are complete."""
    steer(release, times=4)
    pass_time()
    steer(release, times=2)
    pass_time()
    return Release.objects.get(pk=release.pk)


def step(release: Release, index: int) -> ReleaseStep:
    return ReleaseStep.objects.get(release=release, index=index)


def outcome(release: Release, index: int) -> object:
    """The verdict that is kept with the step."""
    verdict = step(release, index).verdict
    assert verdict is not None
    return verdict["outcome"]


def states(release: Release) -> list[str]:
    return [found.state for found in release.steps.all()]


def test_a_release_goes_from_its_start_to_the_gate_and_on_to_its_end(release: Release) -> None:
    release = at_canary(release)
    assert release.state == ReleaseState.PROGRESSING
    assert AliasSplit.objects.get().basis_points == 1000
    release = steer(release)
    assert (release.state, release.pause_kind) == (ReleaseState.PAUSED, PauseKind.GATE)
    stay(release)
    resume_release(actor=make_actor(), release=release)
    release = steer(release)
    assert release.state == ReleaseState.PROMOTED
    assert states(release) == ["passed"] * 5
    assert release.alias.version_id == release.candidate_id
    assert not AliasSplit.objects.exists()
    stay(release)


def test_each_change_has_one_audit_record(release: Release) -> None:
    at_canary(release)
    found = AuditRecord.objects.filter(object__kind="release").order_by("seq").values_list("action", flat=True)
    assert [action.removeprefix("tenant:release:") for action in found] == [
        *("make", "start", "pass_step", "begin_step", "pass_step"),
        *("begin_step", "pass_step", "begin_step"),
    ]


def test_prewarming_waits_for_residency_and_says_so(world: World, release: Release) -> None:
    world.warmth = Warmth(0, 1, note="It is on its way to n1.")
    found = stay(release)
    assert (
        found.sentence
        == step(release, PREWARM).sentence
        == ("The candidate is loaded on 0 of 1 node. It is on its way to n1.")
    )
    looked_at = found.looked_at
    assert stay(release).looked_at == looked_at


def test_prewarming_that_fails_pauses_and_takes_a_retry(world: World, release: Release) -> None:
    world.warmth = Warmth(0, 1, trouble="It can't be loaded.")
    found = steer(release)
    assert (found.state, found.pause_kind) == (ReleaseState.PAUSED, PauseKind.TROUBLE)
    stay(found)
    world.warmth = Warmth(1, 1)
    retry_release(actor=make_actor(), release=found)
    steer(found)
    assert (step(release, PREWARM).state, step(release, PREWARM).attempt) == ("passed", 2)


def test_a_shadow_is_judged_as_one(world: World, release: Release) -> None:
    steer(release, times=4)
    pass_time(seconds=33)
    steer(release)
    (asked,) = world.asked
    assert asked.is_shadow
    assert (asked.until - asked.since).total_seconds() == 30
    assert asked.candidate_id == release.candidate_id


def test_a_window_is_counted_once_for_each_slice(world: World, release: Release) -> None:
    release = at_canary(release)
    world.window = Window()
    world.asked.clear()
    for _look in range(3):
        stay(release)
    assert len(world.asked) == 1
    pass_time(seconds=5)
    stay(release)
    assert len(world.asked) == 2
    first, second = world.asked
    assert second.until - second.since == first.until - first.since + timedelta(seconds=5)


def test_no_traffic_holds(world: World, release: Release) -> None:
    release = at_canary(release)
    world.window = Window()
    found = stay(release)
    assert found.state == ReleaseState.PROGRESSING
    assert outcome(release, CANARY) == "inconclusive"
    assert step(release, CANARY).judged_at is not None
    assert found.sentence


def test_what_cannot_be_counted_holds_and_says_so(world: World, release: Release) -> None:
    release = at_canary(release)
    world.window = None
    assert "could not be counted" in stay(release).sentence
    stay(release)
    assert len([asked for asked in world.asked if not asked.is_shadow]) == 1


def test_what_cannot_be_counted_leaves_the_last_verdict_and_tells_no_number(world: World, release: Release) -> None:
    release = at_canary(release)
    world.window = slices(requests=5)
    stay(release)
    before = step(release, CANARY)
    assert before.verdict is not None
    assert before.course
    world.window = None
    pass_time(seconds=5)
    found = stay(release)
    assert "could not be counted" in found.sentence
    assert "so far" not in found.sentence
    after = step(release, CANARY)
    assert (after.verdict, after.course, after.judged_at) == (before.verdict, before.course, before.judged_at)
    assert after.sentence == found.sentence
    world.asked.clear()
    stay(release)
    assert world.asked == []


def test_too_few_samples_hold_a_pass(world: World, release: Release) -> None:
    plan = {**PLAN, "canary": [{"percent": 10.0, "min_minutes": 0.0, "min_samples": 100_000}]}
    release = begin_release(plan=plan)
    release = at_canary(run_release(release))
    assert "100000 requests to the candidate (3000 so far)" in stay(release).sentence
    assert outcome(release, CANARY) == "pass"


def test_without_a_verdict_in_the_longest_time_it_is_held_until_somebody_lets_it_go_on(
    world: World, release: Release
) -> None:
    release = at_canary(release)
    world.window = Window()
    pass_time(seconds=240 * 60)
    found = steer(release)
    assert (found.state, found.pause_kind) == (ReleaseState.PAUSED, PauseKind.HELD)
    assert AliasSplit.objects.exists()
    began = step(release, CANARY).started_at
    resume_release(actor=make_actor(), release=found)
    pass_time(seconds=30)
    stay(found)
    assert step(release, CANARY).started_at == began
    assert step(release, CANARY).attempt == 1


class TestHarm:
    @pytest.fixture
    def released(self, release: Release) -> Release:
        return at_canary(release)

    def assert_rolled_back(self, release: Release) -> None:
        found = Release.objects.get(pk=release.pk)
        assert found.state == ReleaseState.ROLLED_BACK
        assert found.alias.version_id == found.stable_id
        assert found.alias.moved_by == "rollback"
        assert not AliasSplit.objects.exists()
        assert Rollback.objects.get().left_id == found.candidate_id
        assert step(release, CANARY).state in {StepState.ENDED, StepState.PASSED}

    def test_errors_roll_back_at_once(self, world: World, released: Release) -> None:
        world.window = slices(failed=100)
        steer(released)
        self.assert_rolled_back(released)
        assert outcome(released, CANARY) == "fail"
        assert "Errors" in Release.objects.get(pk=released.pk).sentence
        stay(released)

    def test_slowness_rolls_back(self, world: World, released: Release) -> None:
        world.window = slices(ms=500)
        steer(released)
        self.assert_rolled_back(released)

    def test_while_it_is_paused_too(self, world: World, released: Release) -> None:
        pause_release(actor=make_actor(), release=released)
        world.window = slices(failed=100)
        steer(released)
        self.assert_rolled_back(released)

    def test_at_a_gate_too(self, world: World, released: Release) -> None:
        gated = steer(released)
        assert gated.pause_kind == PauseKind.GATE
        stay(gated)
        pass_time()
        world.window = slices(failed=100)
        steer(gated)
        self.assert_rolled_back(gated)

    def test_the_candidate_is_cooled(
        self, world: World, released: Release, django_capture_on_commit_callbacks: Any
    ) -> None:
        world.window = slices(failed=100)
        with django_capture_on_commit_callbacks(execute=True):
            steer(released)
        assert world.cooled == [released.candidate_id]

    def test_whoever_promoted_it_meanwhile_is_not_undone(self, world: World, released: Release) -> None:
        def promoted_meanwhile(traffic: Traffic) -> Window:
            promote_release(actor=make_actor(), release=released)
            return slices(failed=100)

        PORTS.window = promoted_meanwhile
        stay(released)
        assert Release.objects.get(pk=released.pk).state == ReleaseState.PROMOTED


def test_a_paused_release_says_why_while_its_window_goes_on(world: World, release: Release) -> None:
    release = at_canary(release)
    paused = pause_release(actor=make_actor(), release=release)
    world.window = Window()
    assert stay(release).sentence == paused.sentence
    found = step(release, CANARY)
    assert found.verdict is not None
    assert found.sentence == found.verdict["sentence"]
    resume_release(actor=make_actor(), release=release)
    assert Release.objects.get(pk=release.pk).sentence == found.sentence


def test_a_revoked_stable_version_pauses_it(release: Release) -> None:
    release = at_canary(release)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE registry_version SET state = 'revoked' WHERE id = %s", [release.stable_id])
    found = steer(release)
    assert (found.state, found.pause_kind) == (ReleaseState.PAUSED, PauseKind.TROUBLE)
    assert "revoked" in found.sentence
    stay(found)


def test_a_stable_version_revoked_at_a_gate_opens_no_gate(release: Release) -> None:
    gated = steer(at_canary(release))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE registry_version SET state = 'revoked' WHERE id = %s", [release.stable_id])
    found = stay(gated)
    assert (found.state, found.pause_kind) == (ReleaseState.PAUSED, PauseKind.GATE)
    assert "revoked" in found.sentence
    with pytest.raises(WrongReleaseState):
        retry_release(actor=make_actor(), release=found)
    resume_release(actor=make_actor(), release=found)
    assert steer(found).pause_kind == PauseKind.TROUBLE


def test_only_what_is_under_way_is_steered(release: Release) -> None:
    assert releases_to_steer() == [release.pk]
    begin_release(plan=PLAN)
    assert releases_to_steer() == [release.pk]
    roll_back_release(actor=make_actor(), release=release)
    assert releases_to_steer() == []


def test_a_release_that_another_looks_at_is_left_alone(release: Release) -> None:
    other, key = connection.copy(), [f"steering {release.pk}"]
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", key)
            stay(release)
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)
    finally:
        other.close()
    steer(release)


def test_what_changed_during_a_look_makes_it_void(world: World, release: Release) -> None:
    def changed_meanwhile(**_facts: Any) -> Warmth:
        known = Release.objects.get(pk=release.pk)
        move_release(known, was=ReleaseState.PREWARMING, to=ReleaseState.PAUSED, pause=PauseKind.PERSON)
        return Warmth(ready=1, wanted=1)

    PORTS.warm_up = changed_meanwhile
    stay(release)
    assert step(release, PREWARM).state == StepState.RUNNING


class TestDepartures:
    @pytest.fixture
    def rollback(self, world: World, release: Release) -> Rollback:
        asked_at = timezone.now() - timedelta(seconds=1)
        roll_back_release(actor=make_actor(), release=at_canary(release), asked_at=asked_at)
        return Rollback.objects.get()

    def look(self, rollback: Rollback, *, minutes: float = 0) -> Rollback:
        pass_time(seconds=60 * minutes)
        settle_departures()
        return Rollback.objects.get(pk=rollback.pk)

    def test_the_last_answer_is_known_by_and_by(self, world: World, rollback: Rollback) -> None:
        assert self.look(rollback).last_answer_at is None
        world.answers = LastAnswers(timezone.now(), 2)
        found = self.look(rollback)
        assert (found.last_answer_at, found.strays) == (world.answers.last_at, 2)
        assert found.settled_at is None
        assert world.departures[-1].version_id == rollback.left_id
        assert world.departures[-1].asked_at == rollback.asked_at

    def test_it_settles_and_stays_so(self, world: World, rollback: Rollback) -> None:
        assert self.look(rollback, minutes=16).settled_at is not None
        world.answers = LastAnswers(timezone.now(), 9)
        assert self.look(rollback).strays == 0
        assert settle_departures() == 0

    def test_a_lost_cooling_is_made_up_for(self, world: World, rollback: Rollback) -> None:
        world.cooled.clear()
        self.look(rollback)
        assert world.cooled == [rollback.left_id]
        self.look(rollback, minutes=2)
        assert world.cooled == [rollback.left_id]

    def test_a_lost_cooling_is_made_up_for_however_many_are_open(
        self, world: World, rollback: Rollback, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(departures, "_MOST", 1)
        pass_time(seconds=61)
        run = run_release(begin_release(plan=PLAN))
        roll_back_release(actor=make_actor(), release=run)
        world.cooled.clear()
        assert settle_departures() == 1
        assert world.departures[-1].version_id == rollback.left_id
        assert world.cooled == [run.candidate_id]

    def test_answers_of_a_later_release_are_no_strays(self, world: World, rollback: Rollback) -> None:
        later = run_release(begin_release(alias=rollback.alias, candidate=rollback.left, plan=PLAN))
        pass_time(seconds=30)
        settle_departures()
        assert world.departures[-1].until == later.started_at
