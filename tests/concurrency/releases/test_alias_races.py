from collections.abc import Callable
from typing import Any

import pytest

from registry.models import Version
from registry.services.withdrawals import revoke_version
from registry.states import VersionState
from releases.errors import RevisionChanged, TargetNotServable
from releases.models import Alias, AliasRevision
from releases.services.aliases import roll_back_alias, set_alias
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import make_actor, make_adapter, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]


def mover(version: Version, expected: int | None = None) -> Callable[[], Alias]:
    return lambda: set_alias(
        actor=make_actor(),
        tenant=version.adapter.tenant,
        name="support",
        adapter=version.adapter,
        version=version,
        expected_revision=expected,
    )


def versions_of_one_adapter(count: int) -> list[Version]:
    adapter = make_adapter()
    return [make_version(adapter=adapter) for _number in range(count)]


def assert_history_is_whole(alias: Alias) -> None:
    rows = list(AliasRevision.objects.filter(alias=alias).order_by("number"))
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.previous_version_id for row in rows] == [None, *(row.version_id for row in rows[:-1])]
    assert (alias.revision, alias.version_id) == (rows[-1].number, rows[-1].version_id)


@pytest.mark.parametrize("attempt", range(5))
def test_of_two_moves_from_one_revision_one_wins(attempt: int) -> None:
    first, *others = versions_of_one_adapter(3)
    point_alias(name="support", version=first)
    results = race(*(mover(version, expected=1) for version in others))
    assert [type(error) for error in errors_in(results)] == [RevisionChanged]
    alias = Alias.objects.get(name="support")
    assert alias.revision == 2
    assert_history_is_whole(alias)


@pytest.mark.parametrize("attempt", range(5))
def test_two_first_moves_make_one_alias(attempt: int) -> None:
    results = race(*(mover(version) for version in versions_of_one_adapter(2)))
    assert errors_in(results) == []
    alias = Alias.objects.get(name="support")
    assert alias.revision == 2
    assert_history_is_whole(alias)


def test_two_first_moves_that_expect_no_alias_make_one_and_refuse_one() -> None:
    results = race(*(mover(version, expected=0) for version in versions_of_one_adapter(2)))
    assert [type(error) for error in errors_in(results)] == [RevisionChanged]
    assert Alias.objects.get(name="support").revision == 1


def test_many_moves_and_rollbacks_at_once_leave_a_whole_history() -> None:
    versions = versions_of_one_adapter(5)
    for version in versions[:3]:
        alias = point_alias(name="support", version=version)
    acts: list[Callable[[], Any]] = [mover(version) for version in versions]
    acts += [lambda: roll_back_alias(actor=make_actor(), alias=alias) for _number in range(2)]
    assert errors_in(race(*acts)) == []
    alias.refresh_from_db()
    assert_history_is_whole(alias)


@pytest.mark.parametrize("attempt", range(5))
def test_one_rollback_request_sent_twice_rolls_back_once(attempt: int) -> None:
    for version in versions_of_one_adapter(3):
        alias = point_alias(name="support", version=version)
    results = race(*[lambda: roll_back_alias(actor=make_actor(), alias=alias, from_revision=3)] * 2)
    assert errors_in(results) == []
    alias.refresh_from_db()
    assert alias.revision == 4
    assert_history_is_whole(alias)


@pytest.mark.parametrize("attempt", range(8))
def test_a_move_and_a_revocation_take_turns(attempt: int) -> None:
    """The alias either moved first, and the revocation came after; or the move was refused."""
    first, second = versions_of_one_adapter(2)
    point_alias(name="support", version=first)
    acts: list[Callable[[], Any]] = [
        mover(second),
        lambda: revoke_version(actor=make_actor(), version=second, reason="poisoned"),
    ]
    moved, revoked = race(*acts) if attempt % 2 else reversed(race(*reversed(acts)))
    assert not isinstance(revoked, Exception)
    second.refresh_from_db()
    assert second.state == VersionState.REVOKED
    alias = Alias.objects.get(name="support")
    if isinstance(moved, Exception):
        assert isinstance(moved, TargetNotServable)
        assert alias.version == first
    else:
        assert alias.updated_at < second.state_changed_at


@pytest.mark.parametrize("attempt", range(5))
def test_a_rollback_and_a_revocation_of_its_target_take_turns(attempt: int) -> None:
    versions = versions_of_one_adapter(3)
    for version in versions:
        alias = point_alias(name="support", version=version)
    results = race(
        lambda: roll_back_alias(actor=make_actor(), alias=alias),
        lambda: revoke_version(actor=make_actor(), version=versions[1], reason="poisoned"),
    )
    assert errors_in(results) == []
    alias.refresh_from_db()
    versions[1].refresh_from_db()
    assert alias.version == versions[0] or alias.updated_at < versions[1].state_changed_at
