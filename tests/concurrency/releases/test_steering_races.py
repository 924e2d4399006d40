"""Controllers that are doubled, killed in the middle, and in each other's and people's way."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from registry.models import AuditRecord
from releases.models import AliasRevision, AliasSplit, Release, Rollback
from releases.ports import PORTS, Evaluation, Figures, Warmth
from releases.services import steering
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import abort_release, pause_release, promote_release, resume_release
from releases.services.steering import steer_release
from releases.states import ENDED_STATES, ReleaseState
from tests.concurrency.killing import dies
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import make_actor
from tests.factories.releases import begin_release, run_release
from tests.integration.releases.test_steering import slices

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "ports")]

PLAN: dict[str, Any] = {
    "approvals": 0,
    "shadow": None,
    "canary": [
        {"percent": 10.0, "min_minutes": 0.0, "min_samples": 0},
        {"percent": 50.0, "min_minutes": 0.0, "min_samples": 0},
    ],
}
CHANGES = 8


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """All is warm and well; the versions that were cooled, as often as they were."""
    cooled: list[UUID] = []
    monkeypatch.setattr(PORTS, "warm_up", lambda **_facts: Warmth(ready=1, wanted=1))
    monkeypatch.setattr(PORTS, "evaluation", lambda **_facts: Evaluation(Figures.KEPT, "Kept."))
    monkeypatch.setattr(PORTS, "cool", lambda **facts: cooled.append(facts["version_id"]))
    monkeypatch.setattr(PORTS, "window", lambda _traffic: slices())
    # Every look is one at a new slice.
    monkeypatch.setattr(steering, "_new_count", lambda *_facts, **_more: 1)
    return cooled


def started() -> Release:
    with transaction.atomic():
        return run_release(begin_release(plan=PLAN))


def steer(release: Release) -> Callable[[], bool]:
    """A controller that doesn't even wait for its turn: what a change holds for has to do."""
    return lambda: steering._steer(release.pk)


def to_the_end(release: Release) -> None:
    while steer_release(release_id=release.pk):
        pass


def changes(release: Release) -> list[str]:
    found = AuditRecord.objects.filter(object__kind="release", object__id=str(release.pk)).order_by("seq")
    return [action.removeprefix("tenant:release:") for action in found.values_list("action", flat=True)]


def assert_done_once(release: Release) -> None:
    """Every step began once and passed once, in order; the alias was moved once."""
    found = Release.objects.get(pk=release.pk)
    assert found.state == ReleaseState.PROMOTED
    assert [(step.state, step.attempt) for step in found.steps.all()] == [("passed", 1)] * 5
    times = [(step.started_at, step.ended_at) for step in found.steps.all()]
    assert times == sorted(times)
    assert changes(release) == ["make", "start", *["pass_step", "begin_step"] * 3, "pass_step", "promote"]
    assert AliasRevision.objects.filter(alias=found.alias).count() == 2
    assert found.alias.version_id == found.candidate_id


def test_two_controllers_make_each_change_once() -> None:
    release = started()
    made = 0
    while Release.objects.get(pk=release.pk).state != ReleaseState.PROMOTED:
        results = race(steer(release), steer(release), steer(release))
        assert errors_in(results) == []
        made += sum(result is True for result in results)
    assert made == CHANGES
    assert_done_once(release)


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.e2e)])
def test_a_controller_that_is_killed_anywhere_leaves_nothing_half_done(stride: int) -> None:
    release = started()
    step, killed, changes = 1, 0, 0
    while Release.objects.get(pk=release.pk).state != ReleaseState.PROMOTED:
        before = Release.objects.get(pk=release.pk).revision
        if dies(steer(release), before_step=step):
            killed += 1
            step += stride
        else:
            changes += 1
            # Each change from another step on, so that no kind of step is left out of all of them.
            step = 1 + changes % stride
        assert Release.objects.get(pk=release.pk).revision - before in {0, 1}
    assert killed > CHANGES
    assert_done_once(release)


@pytest.mark.parametrize("verb", [promote_release, abort_release, roll_back_release])
@pytest.mark.parametrize("made", [1, 3, 5])
def test_a_persons_end_and_a_controllers_change_take_turns(verb: Callable[..., Release], made: int) -> None:
    release = started()
    for _change in range(made):
        steer(release)()
    results = race(steer(release), lambda: verb(actor=make_actor(), release=release), steer(release))
    assert errors_in(results) == []
    found = Release.objects.get(pk=release.pk)
    assert found.state in ENDED_STATES
    assert not AliasSplit.objects.filter(alias=found.alias).exists()
    assert not found.steps.filter(state__in=["running", "waiting"]).exists()
    assert (found.alias.version_id == found.candidate_id) is (found.state == ReleaseState.PROMOTED)
    assert not steer(release)()


def test_a_pause_and_a_controllers_change_take_turns() -> None:
    release = started()
    actor = make_actor()
    for _change in range(CHANGES):
        results = race(steer(release), lambda: pause_release(actor=actor, release=release))
        assert errors_in(results) == [] or Release.objects.get(pk=release.pk).state in ENDED_STATES
        if Release.objects.get(pk=release.pk).state == ReleaseState.PAUSED:
            resume_release(actor=actor, release=release)
    to_the_end(release)
    assert [(step.state, step.attempt) for step in Release.objects.get(pk=release.pk).steps.all()] == [
        ("passed", 1)
    ] * 5


def test_harm_that_two_controllers_find_is_rolled_back_once(monkeypatch: pytest.MonkeyPatch, ports: list[UUID]) -> None:
    release = started()
    for _change in range(5):
        steer(release)()
    monkeypatch.setattr(PORTS, "window", lambda _traffic: slices(failed=100))
    results = race(*[steer(release)] * 3, lambda: roll_back_release(actor=make_actor(), release=release))
    assert errors_in(results) == []
    assert Rollback.objects.count() == 1
    assert Release.objects.get(pk=release.pk).state == ReleaseState.ROLLED_BACK
    assert changes(release).count("roll_back") == 1
    assert ports == [release.candidate_id]
