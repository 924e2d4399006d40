"""People, a controller and a withdrawal at the same moment: one wins, the others are refused, nothing is in between."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError

from registry.actors import Actor
from registry.errors import StaleState
from registry.models import Version
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, VersionState
from releases.errors import AliasIsSplit, ReleaseActive, ReleaseError, TargetNotServable, WrongReleaseState
from releases.models import Alias, Release, ReleaseApproval, Rollback
from releases.services.aliases import roll_back_alias
from releases.services.releases.make import make_release
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import (
    abort_release,
    pause_release,
    promote_release,
    resume_release,
    start_release,
)
from releases.services.splits import SplitWish, set_split
from tests.concurrency.racing import errors_in, race
from tests.concurrency.releases.standing import assert_all_stands
from tests.factories.registry import make_actor, make_member, make_version
from tests.factories.releases import SHORT_PLAN, begin_release, consent, make_alias, point_alias, run_release, take_on

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]

Act = Callable[[], Any]
CANARY = 2
TIMES = range(4)


@pytest.fixture
def alias() -> Alias:
    first = make_version()
    point_alias(name="support", version=first)
    return point_alias(name="support", version=make_version(adapter=first.adapter))


def at_once(*acts: Act, attempt: int = 0) -> list[Any]:
    """Race the acts; their order of setting out turns with the attempt. Nobody ends in a deadlock."""
    turn = attempt % len(acts)
    results = race(*acts[turn:], *acts[:turn])
    assert [error for error in errors_in(results) if isinstance(error, DatabaseError)] == []
    assert all(isinstance(error, ReleaseError | StaleState) for error in errors_in(results)), results
    return [*results[len(acts) - turn :], *results[: len(acts) - turn]]


def controller(release: Release) -> Act:
    return lambda: take_on(release)


def maker(alias: Alias, candidate: Version, actor: Actor) -> Act:
    return lambda: make_release(actor=actor, alias=alias, candidate=candidate, plan_text='{"approvals": 0}')


@pytest.mark.parametrize("attempt", TIMES)
def test_of_two_who_make_a_release_one_does(alias: Alias, attempt: int) -> None:
    people = [make_member(alias.tenant, Role.RELEASE_MANAGER) for _number in range(2)]
    results = at_once(*(maker(alias, make_version(adapter=alias.adapter), actor) for actor in people))
    assert [type(error) for error in errors_in(results)] == [ReleaseActive]
    assert_all_stands(alias.pk)


def test_one_person_who_makes_it_twice_makes_one(alias: Alias) -> None:
    manager, candidate = make_member(alias.tenant, Role.RELEASE_MANAGER), make_version(adapter=alias.adapter)
    results = at_once(*[maker(alias, candidate, manager)] * 3)
    assert errors_in(results) == []
    assert Release.objects.count() == 1


@pytest.mark.parametrize("attempt", TIMES)
def test_a_release_and_a_move_by_hand_take_turns(alias: Alias, attempt: int) -> None:
    candidate, other = (make_version(adapter=alias.adapter) for _number in range(2))
    made, moved = at_once(
        maker(alias, candidate, make_member(alias.tenant, Role.RELEASE_MANAGER)),
        lambda: point_alias(name="support", version=other),
        attempt=attempt,
    )
    assert isinstance(made, Release)
    assert isinstance(moved, ReleaseActive) or made.stable_id == other.pk
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_a_release_and_a_split_by_hand_take_turns(alias: Alias, attempt: int) -> None:
    candidate, other = (make_version(adapter=alias.adapter) for _number in range(2))
    results = at_once(
        maker(alias, candidate, make_member(alias.tenant, Role.RELEASE_MANAGER)),
        lambda: set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=other)),
        attempt=attempt,
    )
    assert [type(error) for error in errors_in(results)] in ([AliasIsSplit], [ReleaseActive])
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_a_start_sent_to_many_begins_the_first_step_once(alias: Alias, attempt: int) -> None:
    release = begin_release(alias=alias)
    results = at_once(*[lambda: start_release(actor=make_actor(), release=release)] * 3)
    assert errors_in(results) == []
    assert release.steps.get(index=0).attempt == 1
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_two_controllers_take_each_step_once(alias: Alias, attempt: int) -> None:
    release = run_release(begin_release(alias=alias))
    results = at_once(*[controller(release)] * 2)
    assert errors_in(results) == []
    attempts = list(release.steps.order_by("index").values_list("state", "attempt"))
    assert attempts[:3] == [("passed", 1), ("passed", 1), ("running", 1)]
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_a_promotion_and_a_rollback_end_with_the_candidate_gone(alias: Alias, attempt: int) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY)
    _promoted, rolled = at_once(
        lambda: promote_release(actor=make_actor(), release=release),
        lambda: roll_back_release(actor=make_actor(), release=release),
        attempt=attempt,
    )
    assert isinstance(rolled, Release)
    assert rolled.state == "rolled_back"
    alias.refresh_from_db()
    assert alias.version_id == release.stable_id
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
@pytest.mark.parametrize("withdraw", [revoke_version, yank_version])
def test_a_withdrawal_of_the_candidate_takes_turns_with_everything(
    alias: Alias, withdraw: Callable[..., Version], attempt: int
) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY - 1)
    results = at_once(
        controller(release),
        lambda: withdraw(actor=make_actor(), version=release.candidate, reason="poisoned"),
        lambda: pause_release(actor=make_actor(), release=release),
        attempt=attempt,
    )
    assert isinstance(results[1], Version)
    release.refresh_from_db()
    assert release.state == "rolled_back"
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_a_withdrawal_and_a_release_to_the_version_take_turns(alias: Alias, attempt: int) -> None:
    candidate = make_version(adapter=alias.adapter)
    made, revoked = at_once(
        maker(alias, candidate, make_member(alias.tenant, Role.RELEASE_MANAGER)),
        lambda: revoke_version(actor=make_actor(), version=candidate, reason="poisoned"),
        attempt=attempt,
    )
    assert isinstance(revoked, Version)
    assert isinstance(made, Release | TargetNotServable)
    assert set(Release.objects.values_list("state", flat=True)) <= {"rolled_back"}
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_a_withdrawal_and_splits_of_many_aliases_take_turns(alias: Alias, attempt: int) -> None:
    candidate = make_version(adapter=alias.adapter)
    aliases = [point_alias(name=f"a{number}", version=alias.version) for number in range(3)]
    acts: list[Act] = [
        lambda alias=each: set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=candidate))  # type: ignore[misc]
        for each in aliases
    ]
    results = at_once(
        lambda: revoke_version(actor=make_actor(), version=candidate, reason="poisoned"), *acts, attempt=attempt
    )
    assert isinstance(results[0], Version)
    for each in aliases:
        assert_all_stands(each.pk)
    candidate.refresh_from_db()
    assert candidate.state == VersionState.REVOKED


@pytest.mark.parametrize("attempt", TIMES)
def test_one_click_on_rollback_that_comes_many_times_rolls_back_once(alias: Alias, attempt: int) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY)
    results = at_once(
        lambda: roll_back_release(actor=make_actor(), release=release),
        lambda: roll_back_alias(actor=make_actor(), alias=alias, from_revision=2),
        lambda: roll_back_release(actor=make_actor(), release=release),
        attempt=attempt,
    )
    assert errors_in(results) == []
    assert Rollback.objects.count() == 1
    alias.refresh_from_db()
    assert (alias.revision, alias.version_id) == (3, release.stable_id)
    assert_all_stands(alias.pk)


@pytest.mark.parametrize("attempt", TIMES)
def test_a_person_who_pauses_and_a_controller_that_passes_take_turns(alias: Alias, attempt: int) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY - 1)
    at_once(
        controller(release),
        lambda: pause_release(actor=make_actor(), release=release),
        lambda: abort_release(actor=make_actor(), release=release),
        lambda: resume_release(actor=make_actor(), release=release),
        attempt=attempt,
    )
    release.refresh_from_db()
    assert release.state == "aborted"
    assert_all_stands(alias.pk)


def test_many_consents_at_once_are_all_counted(alias: Alias) -> None:
    release = begin_release(alias=alias, plan=SHORT_PLAN | {"approvals": 3})
    people = [make_member(alias.tenant, Role.REVIEWER) for _number in range(3)]
    acts: list[Act] = [lambda actor=actor: consent(release, actor=actor) for actor in people]  # type: ignore[misc]
    assert errors_in(at_once(*acts)) == []
    assert ReleaseApproval.objects.count() == 3
    assert start_release(actor=make_actor(), release=release).state == "prewarming"


@pytest.mark.parametrize("attempt", TIMES)
def test_an_abort_and_a_promotion_agree_on_one_end(alias: Alias, attempt: int) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY)
    results = at_once(
        lambda: promote_release(actor=make_actor(), release=release),
        lambda: abort_release(actor=make_actor(), release=release),
        attempt=attempt,
    )
    assert [type(error) for error in errors_in(results)] == [WrongReleaseState]
    assert_all_stands(alias.pk)


def test_releases_of_two_aliases_with_the_same_versions_do_not_wait_for_each_other_in_a_circle(alias: Alias) -> None:
    other = make_alias(version=alias.version)
    there, back = (make_version(adapter=alias.adapter) for _number in range(2))
    one = run_release(begin_release(alias=alias, candidate=there), until=CANARY)
    two = run_release(begin_release(alias=other, candidate=back), until=CANARY)
    results = at_once(
        lambda: promote_release(actor=make_actor(), release=one),
        lambda: roll_back_release(actor=make_actor(), release=two),
        lambda: revoke_version(actor=make_actor(), version=back, reason="poisoned"),
        lambda: yank_version(actor=make_actor(), version=there, reason="old"),
    )
    assert not isinstance(results[2], Exception)
    for each in (alias, other):
        assert_all_stands(each.pk)
