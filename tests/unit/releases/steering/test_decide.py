from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from releases.judge.verdict import Outcome, Verdict
from releases.plan.steps import CanaryStep, EvaluateStep, PrewarmStep, ShadowStep
from releases.ports import Evaluation, Figures, Warmth
from releases.states import ENDED_STATES, RUNNING_STATES, PauseKind, ReleaseState, StepKind, StepState
from releases.steering.changes import Begin, Change, Pass, Pause, Promote, RollBack, Wait
from releases.steering.decide import decide
from releases.steering.snapshot import Judged, Look, Snapshot, StepView

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
PREWARM = PrewarmStep(nodes=2, longest_minutes=15.0)
EVALUATE = EvaluateStep(longest_minutes=60.0)
SHADOW = ShadowStep(min_minutes=5.0, min_samples=200, longest_minutes=240.0)
CANARY = CanaryStep(percent=10.0, min_minutes=5.0, min_samples=200, longest_minutes=240.0)
KINDS = [
    (StepKind.PREWARM, PREWARM),
    (StepKind.EVALUATE, EVALUATE),
    (StepKind.SHADOW, SHADOW),
    (StepKind.CANARY, CANARY),
    (StepKind.PROMOTE, None),
]
STATES = {StepKind.PREWARM: "prewarming", StepKind.EVALUATE: "prewarming", StepKind.SHADOW: "shadowing"}


def steps(at: int, *, state: StepState = StepState.RUNNING, minutes: float = 10.0, **facts: Any) -> list[StepView]:
    """All before ``at`` have passed, that one is in ``state`` since ``minutes``, the rest wait."""
    began = NOW - timedelta(minutes=minutes)
    made = []
    for index, (kind, spec) in enumerate(KINDS):
        is_begun = index < at or (index == at and state is not StepState.WAITING)
        times = {"started_at": began, "waits_since": began} if is_begun else {}
        own = facts if index == at else {}
        made.append(
            StepView(
                index=index,
                kind=kind,
                state=StepState.PASSED if index < at else state if index == at else StepState.WAITING,
                **{"spec": spec, **times, **own},
            )
        )
    return made


def at_step(at: int, look: Look | None = None, **facts: Any) -> Change:
    names = {"state", "minutes", "spec", "waits_since"}
    of_steps = {name: value for name, value in facts.items() if name in names}
    of_release = {name: value for name, value in facts.items() if name not in names}
    known = {"state": ReleaseState(STATES.get(KINDS[at][0], "progressing"))} | of_release.pop("release", {})
    return decide(Snapshot(steps=steps(at, **of_steps), look=look, **{**known, **of_release}), NOW)


def live_spec(at: int, **facts: Any) -> ShadowStep | CanaryStep:
    return ShadowStep(**facts) if KINDS[at][0] is StepKind.SHADOW else CanaryStep(percent=10.0, **facts)


def judged(outcome: Outcome, *, samples: int = 1000) -> Judged:
    return Judged(Verdict(outcome, f"It is a {outcome.value}.", ()), samples=samples)


PASS, FAIL, OPEN = judged(Outcome.PASS), judged(Outcome.FAIL), judged(Outcome.INCONCLUSIVE)
PAUSED = {"release": {"state": ReleaseState.PAUSED}}
LIVE = [2, 3]


@pytest.mark.parametrize("at", range(1, 4))
def test_the_next_step_begins_when_all_before_it_have_passed(at: int) -> None:
    change = at_step(at, state=StepState.WAITING)
    assert isinstance(change, Begin)
    assert change.index == at
    assert change.sentence


def test_the_last_step_promotes() -> None:
    assert at_step(4, state=StepState.WAITING) == Promote()


def test_a_step_that_was_skipped_is_over() -> None:
    views = steps(3, state=StepState.WAITING)
    views[2] = StepView(index=2, kind=StepKind.SHADOW, state=StepState.SKIPPED, spec=SHADOW)
    change = decide(Snapshot(state=ReleaseState.PREWARMING, steps=views), NOW)
    assert isinstance(change, Begin)
    assert change.index == 3


@pytest.mark.parametrize("state", sorted(ENDED_STATES))
@pytest.mark.parametrize("look", [PASS, FAIL, None])
def test_a_release_that_is_over_stays_as_it_is(state: ReleaseState, look: Look | None) -> None:
    assert at_step(3, look, release={"state": state}) == Wait()


def test_a_release_that_was_not_started_waits_for_a_person() -> None:
    assert at_step(0, state=StepState.WAITING, release={"state": ReleaseState.PENDING}) == Wait()


class TestPrewarming:
    def test_it_passes_when_the_candidate_is_on_all_nodes(self) -> None:
        assert at_step(0, Warmth(ready=2, wanted=2)) == Pass("The candidate is loaded on 2 of 2 nodes.")

    def test_it_waits_for_the_rest(self) -> None:
        told = "The candidate is loaded on 1 of 2 nodes. It is on its way to n2."
        assert at_step(0, Warmth(1, 2, note="It is on its way to n2.")) == Wait(told)

    def test_no_node_is_not_all_nodes(self) -> None:
        assert at_step(0, Warmth(ready=0, wanted=0)) == Wait("The candidate is loaded on 0 of 0 nodes.")

    def test_trouble_that_does_not_heal_pauses_at_once(self) -> None:
        change = at_step(0, Warmth(0, 2, trouble="No node serves it."), minutes=0)
        assert change == Pause(PauseKind.TROUBLE, "The candidate is loaded on 0 of 2 nodes. No node serves it.")

    def test_it_pauses_after_its_longest_time(self) -> None:
        assert isinstance(at_step(0, Warmth(1, 2), minutes=14.9), Wait)
        change = at_step(0, Warmth(1, 2), minutes=15)
        assert change == Pause(PauseKind.TROUBLE, "After 15 minutes: The candidate is loaded on 1 of 2 nodes.")

    def test_who_resumed_it_gave_it_as_much_time_again(self) -> None:
        assert isinstance(at_step(0, Warmth(1, 2), minutes=20, waits_since=NOW - timedelta(minutes=14)), Wait)


class TestEvaluating:
    @pytest.mark.parametrize("is_needed", [True, False])
    def test_kept_gates_pass_and_broken_ones_pause(self, is_needed: bool) -> None:
        spec = EvaluateStep(is_needed=is_needed)
        assert at_step(1, Evaluation(Figures.KEPT, "Kept."), spec=spec) == Pass("Kept.")
        broken = at_step(1, Evaluation(Figures.BROKEN, "Broken."), spec=spec)
        assert broken == Pause(PauseKind.TROUBLE, "Broken.")

    def test_without_figures_it_passes_only_where_none_are_needed(self) -> None:
        none = Evaluation(Figures.NONE, "There are none.")
        assert at_step(1, none) == Pass("There are none.")
        assert at_step(1, none, spec=EvaluateStep(is_needed=True)) == Pause(PauseKind.TROUBLE, "There are none.")

    def test_figures_are_awaited_for_the_longest_time(self) -> None:
        awaited = Evaluation(Figures.AWAITED, "It is evaluated.")
        assert at_step(1, awaited, minutes=59) == Wait("It is evaluated.")
        change = at_step(1, awaited, minutes=60)
        assert change == Pause(PauseKind.TROUBLE, "After 60 minutes: It is evaluated.")


@pytest.mark.parametrize("at", LIVE)
class TestLive:
    def test_it_passes_with_time_samples_and_a_verdict(self, at: int) -> None:
        assert at_step(at, PASS, minutes=5) == Pass("It is a pass.")

    def test_a_pass_waits_for_the_least_time(self, at: int) -> None:
        assert at_step(at, PASS, minutes=4.9) == Wait("It is a pass. It waits for 5 minutes to be over.")

    def test_a_pass_waits_for_the_least_samples(self, at: int) -> None:
        change = at_step(at, judged(Outcome.PASS, samples=199))
        assert isinstance(change, Wait)
        assert "199 so far" in change.sentence
        assert at_step(at, judged(Outcome.PASS, samples=200)) == Pass("It is a pass.")

    @pytest.mark.parametrize("minutes", [0.0, 10.0, 1000.0])
    @pytest.mark.parametrize("samples", [0, 10_000])
    def test_a_fail_rolls_back_at_any_look(self, at: int, minutes: float, samples: int) -> None:
        change = at_step(at, judged(Outcome.FAIL, samples=samples), minutes=minutes)
        assert change == RollBack("It is a fail.")

    def test_what_cannot_be_told_holds(self, at: int) -> None:
        assert at_step(at, OPEN) == Wait("It is a inconclusive.")

    def test_no_data_never_passes(self, at: int) -> None:
        nothing = judged(Outcome.INCONCLUSIVE, samples=0)
        spec = live_spec(at, min_minutes=0.0, min_samples=0)
        assert isinstance(at_step(at, nothing, spec=spec), Wait)

    @pytest.mark.parametrize("look", [OPEN, judged(Outcome.PASS, samples=1)])
    def test_without_a_verdict_it_is_held_after_its_longest_time(self, at: int, look: Judged) -> None:
        assert isinstance(at_step(at, look, minutes=239), Wait)
        change = at_step(at, look, minutes=240)
        assert isinstance(change, Pause)
        assert change.kind is PauseKind.HELD
        assert change.sentence.startswith("After 240 minutes it can't be told whether to go on.")

    def test_who_let_it_go_on_gave_it_as_much_time_again(self, at: int) -> None:
        assert isinstance(at_step(at, OPEN, minutes=300, waits_since=NOW - timedelta(minutes=239)), Wait)

    def test_a_pass_at_the_last_moment_counts(self, at: int) -> None:
        spec = live_spec(at, min_minutes=5.0, longest_minutes=5.0)
        assert at_step(at, None, minutes=5.1, spec=spec) == Wait()
        assert at_step(at, PASS, minutes=5.1, spec=spec) == Pass("It is a pass.")

    def test_without_a_new_look_nothing_is_said(self, at: int) -> None:
        assert at_step(at, None) == Wait()


class TestPaused:
    @pytest.mark.parametrize("pause", list(PauseKind))
    @pytest.mark.parametrize("look", [PASS, OPEN, None])
    def test_it_goes_nowhere_by_itself(self, pause: PauseKind, look: Look | None) -> None:
        assert at_step(3, look, minutes=1000, pause=pause, **PAUSED) == Wait()

    @pytest.mark.parametrize("pause", list(PauseKind))
    def test_harm_rolls_back_all_the_same(self, pause: PauseKind) -> None:
        assert at_step(3, FAIL, pause=pause, **PAUSED) == RollBack("It is a fail.")

    def test_harm_rolls_back_at_a_gate(self) -> None:
        change = at_step(3, FAIL, state=StepState.WAITING, pause=PauseKind.GATE, **PAUSED)
        assert change == RollBack("It is a fail.")

    def test_no_step_begins_at_a_gate(self) -> None:
        assert at_step(3, PASS, state=StepState.WAITING, pause=PauseKind.GATE, **PAUSED) == Wait()


class TestVersions:
    @pytest.mark.parametrize("at", range(4))
    def test_a_withdrawn_candidate_rolls_back(self, at: int) -> None:
        assert at_step(at, PASS, candidate_trouble="It is revoked.") == RollBack("It is revoked.")

    def test_so_it_does_before_the_start(self) -> None:
        change = at_step(
            0, state=StepState.WAITING, release={"state": ReleaseState.PENDING}, candidate_trouble="It is revoked."
        )
        assert change == RollBack("It is revoked.")

    @pytest.mark.parametrize("at", range(4))
    def test_without_its_stable_version_it_pauses_once(self, at: int) -> None:
        change = at_step(at, PASS, stable_trouble="It is gone.")
        assert change == Pause(PauseKind.TROUBLE, "It is gone.")
        assert at_step(at, PASS, stable_trouble="It is gone.", pause=PauseKind.TROUBLE, **PAUSED) == Wait()

    def test_whoever_paused_it_is_told(self) -> None:
        change = at_step(3, None, stable_trouble="It is gone.", pause=PauseKind.PERSON, **PAUSED)
        assert change == Pause(PauseKind.TROUBLE, "It is gone.")

    def test_at_a_gate_it_is_told_and_the_gate_stays_closed(self) -> None:
        change = at_step(3, None, stable_trouble="It is gone.", pause=PauseKind.GATE, **PAUSED)
        assert isinstance(change, Wait)
        assert change.sentence.startswith("It is gone. Its gate waits")


@pytest.mark.parametrize("state", list(ReleaseState))
@pytest.mark.parametrize("look", [PASS, FAIL, OPEN, Warmth(2, 2), Evaluation(Figures.KEPT, "Kept."), None])
@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("step_state", [StepState.WAITING, StepState.RUNNING])
def test_only_a_release_that_runs_goes_on(
    state: ReleaseState, look: Look | None, at: int, step_state: StepState
) -> None:
    change = at_step(at, look, state=step_state, release={"state": state})
    if isinstance(change, Begin | Pass | Promote):
        assert state in RUNNING_STATES
    if isinstance(change, Promote):
        assert at == 4
    if isinstance(change, Pass):
        assert step_state is StepState.RUNNING


def test_the_standing_step_is_the_one_by_which_requests_are_split() -> None:
    running = Snapshot(state=ReleaseState.PROGRESSING, steps=steps(3))
    between = Snapshot(state=ReleaseState.PROGRESSING, steps=steps(3, state=StepState.WAITING))
    before = Snapshot(state=ReleaseState.PENDING, steps=steps(0, state=StepState.WAITING))
    assert [found.standing and found.standing.index for found in (running, between, before)] == [3, 2, None]
