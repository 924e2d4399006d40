"""Rollback: in every state, at once, without approval, as often as one likes; and what a withdrawal rolls back."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from registry.errors import NotFound, PermissionDenied
from registry.models import AuditRecord, Version
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, VersionState
from releases.errors import NothingToRollBackTo, WrongReleaseState
from releases.models import Alias, AliasProtection, AliasSplit, Release, Rollback
from releases.ports import PORTS
from releases.selectors import active_release, alias_history, list_rollbacks
from releases.services.aliases import roll_back_alias
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.steps import hold_release
from releases.services.releases.verbs import abort_release, promote_release
from releases.services.splits import SplitWish, set_split
from releases.states import PauseKind, ReleaseState
from tests.factories.registry import make_actor, make_adapter, make_member, make_tenant, make_version
from tests.factories.releases import begin_release, point_alias, run_release

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

CANARY = 2


@pytest.fixture
def first() -> Version:
    return make_version()


@pytest.fixture
def alias(first: Version) -> Alias:
    point_alias(name="support", version=first)
    return point_alias(name="support", version=make_version(adapter=first.adapter))


@pytest.fixture
def cooled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, str]]:
    asked: list[tuple[Any, str]] = []
    monkeypatch.setattr(PORTS, "cool", lambda *, actor, version_id, reason: asked.append((version_id, reason)))
    return asked


def bring_to(alias: Alias, where: str) -> Release:
    release = begin_release(alias=alias)
    if where == "prewarming":
        return run_release(release)
    if where == "progressing":
        return run_release(release, until=CANARY)
    if where in set(PauseKind):
        running = run_release(release, until=CANARY)
        return hold_release(running, actor=make_actor(), pause=PauseKind(where), sentence="It waits.")
    return release


WHERE = ["pending", "prewarming", "progressing", *(kind.value for kind in PauseKind)]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("door", ["release", "alias"])
def test_a_rollback_ends_a_release_wherever_it_is_and_the_alias_has_a_new_revision(
    alias: Alias, where: str, door: str, cooled: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    release = bring_to(alias, where)
    operator = make_member(alias.tenant, Role.OPERATOR)
    asked_at = timezone.now() - timedelta(seconds=1)
    with django_capture_on_commit_callbacks(execute=True):
        if door == "release":
            roll_back_release(actor=operator, release=release, reason="bad", asked_at=asked_at)
        else:
            roll_back_alias(actor=operator, alias=alias, reason="bad", asked_at=asked_at)
    release.refresh_from_db()
    now = Alias.objects.get(pk=alias.pk)
    assert (release.state, release.sentence, release.pause_kind) == ("rolled_back", "bad", "")
    assert (now.version_id, now.revision, now.moved_by) == (alias.version_id, 3, "rollback")
    assert not AliasSplit.objects.exists()
    assert {"waiting", "running"}.isdisjoint(release.steps.values_list("state", flat=True))
    rollback = Rollback.objects.get()
    assert (rollback.alias, rollback.release, rollback.left_id) == (alias, release, release.candidate_id)
    assert (rollback.revision, rollback.asked_at) == (3, asked_at)
    assert rollback.committed_at > asked_at
    assert cooled == [(release.candidate_id, "bad")]


def test_a_rollback_of_a_release_undoes_no_earlier_move(alias: Alias, first: Version) -> None:
    roll_back_release(actor=make_actor(), release=run_release(begin_release(alias=alias), until=CANARY))
    assert roll_back_alias(actor=make_actor(), alias=alias).version == first


def test_a_repeated_click_rolls_back_once(alias: Alias) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY)
    for _time in range(2):
        roll_back_release(actor=make_actor(), release=release)
        assert roll_back_alias(actor=make_actor(), alias=alias, from_revision=2).revision == 3
    assert Rollback.objects.count() == 1
    assert AuditRecord.objects.filter(action="tenant:release:roll_back").count() == 1
    assert AuditRecord.objects.filter(action="tenant:alias:roll_back").count() == 1


def test_a_promoted_release_is_rolled_back_to_what_answered_before(
    alias: Alias, cooled: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    release = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    with django_capture_on_commit_callbacks(execute=True):
        for _time in range(2):
            rolled = roll_back_release(actor=make_actor(), release=release, reason="worse after all")
    now = Alias.objects.get(pk=alias.pk)
    assert (rolled.state, now.version_id, now.revision) == ("rolled_back", alias.version_id, 4)
    assert Rollback.objects.get().left_id == release.candidate_id
    assert cooled == [(release.candidate_id, "worse after all")]


def test_rolling_back_the_alias_rolls_back_the_release_that_moved_it(alias: Alias) -> None:
    release = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    roll_back_alias(actor=make_actor(), alias=alias)
    release.refresh_from_db()
    assert release.state == ReleaseState.ROLLED_BACK
    assert Rollback.objects.get().release == release


def test_two_promoted_releases_are_rolled_back_one_after_the_other(alias: Alias) -> None:
    older = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    newer = promote_release(actor=make_actor(), release=begin_release(alias=Alias.objects.get(pk=alias.pk)))
    with pytest.raises(WrongReleaseState, match="moved on"):
        roll_back_release(actor=make_actor(), release=older)
    for release in (newer, older):
        assert roll_back_release(actor=make_actor(), release=release).state == ReleaseState.ROLLED_BACK
    assert Alias.objects.get(pk=alias.pk).version_id == alias.version_id


def test_rolling_back_a_promoted_release_ends_the_one_that_is_under_way_from_there(alias: Alias) -> None:
    promoted = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    here = Alias.objects.get(pk=alias.pk)
    under_way = run_release(begin_release(alias=here), until=CANARY)
    for _time in range(2):
        assert roll_back_release(actor=make_actor(), release=promoted).state == ReleaseState.ROLLED_BACK
    under_way.refresh_from_db()
    assert under_way.state == ReleaseState.ROLLED_BACK
    assert Alias.objects.get(pk=alias.pk).version_id == alias.version_id
    assert not AliasSplit.objects.exists()
    left = [row.left_id for row in Rollback.objects.order_by("revision")]
    assert left == [under_way.candidate_id, promoted.candidate_id]


@pytest.mark.parametrize("which", ["promoted", "under way"])
def test_where_the_way_back_passes_over_a_revoked_version_its_release_is_rolled_back_too(
    alias: Alias, which: str
) -> None:
    promoted = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    under_way = begin_release(alias=Alias.objects.get(pk=alias.pk))
    revoke_version(actor=make_actor(), version=promoted.candidate, reason="poisoned")
    roll_back_release(actor=make_actor(), release=promoted if which == "promoted" else under_way)
    assert set(Release.objects.values_list("state", flat=True)) == {"rolled_back"}
    assert Alias.objects.get(pk=alias.pk).version_id == alias.version_id


def test_a_version_that_was_moved_back_in_by_hand_is_not_there_by_the_release_that_once_brought_it(
    alias: Alias,
) -> None:
    release = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    other = make_version(adapter=alias.adapter)
    for version in (other, release.candidate):
        point_alias(name="support", version=version)
    with pytest.raises(WrongReleaseState, match="has moved on"):
        roll_back_release(actor=make_actor(), release=release)
    back = roll_back_alias(actor=make_actor(), alias=alias)
    release.refresh_from_db()
    assert (release.state, back.version_id) == ("promoted", other.pk)


def test_a_move_by_hand_and_its_rollback_leave_promoted_releases_alone(alias: Alias) -> None:
    release = promote_release(actor=make_actor(), release=begin_release(alias=alias))
    point_alias(name="support", version=make_version(adapter=alias.adapter))
    with pytest.raises(WrongReleaseState, match="moved on"):
        roll_back_release(actor=make_actor(), release=release)
    back = roll_back_alias(actor=make_actor(), alias=alias)
    release.refresh_from_db()
    assert (release.state, back.version_id) == ("promoted", release.candidate_id)
    assert Rollback.objects.get().release is None


def test_an_aborted_release_has_nothing_to_roll_back(alias: Alias) -> None:
    release = abort_release(actor=make_actor(), release=begin_release(alias=alias))
    assert roll_back_release(actor=make_actor(), release=release).state == ReleaseState.ABORTED
    assert Alias.objects.get(pk=alias.pk).revision == 2
    assert not Rollback.objects.exists()


def test_a_rollback_from_a_revoked_stable_version_goes_to_the_last_good_one(alias: Alias, first: Version) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY)
    revoke_version(actor=make_actor(), version=alias.version, reason="poisoned")
    assert active_release(alias.pk) == release
    roll_back_release(actor=make_actor(), release=release)
    assert Alias.objects.get(pk=alias.pk).version == first


def test_without_any_good_version_the_candidate_answers_no_more_all_the_same(alias: Alias, first: Version) -> None:
    for _time in range(2):
        release = run_release(begin_release(alias=alias), until=CANARY)
        for version in (first, alias.version):
            revoke_version(actor=make_actor(), version=version, reason="poisoned")
        assert roll_back_release(actor=make_actor(), release=release).state == ReleaseState.ROLLED_BACK
        assert not AliasSplit.objects.exists()
    assert Alias.objects.get(pk=alias.pk).revision == 2
    assert Rollback.objects.count() == 2
    with pytest.raises(NothingToRollBackTo):
        roll_back_alias(actor=make_actor(), alias=alias)


@pytest.mark.parametrize("role", list(Role))
def test_who_may_roll_back_an_alias_may_roll_back_its_releases(alias: Alias, role: Role) -> None:
    release = begin_release(alias=alias)
    actor = make_member(alias.tenant, role)
    if role in {Role.OPERATOR, Role.RELEASE_MANAGER}:
        roll_back_release(actor=actor, release=release)
    else:
        with pytest.raises(PermissionDenied):
            roll_back_release(actor=actor, release=release)


def test_protection_keeps_nobody_from_rolling_back(alias: Alias) -> None:
    release = run_release(begin_release(alias=alias), until=CANARY)
    # What was done before was committed before.
    connection.check_constraints()
    AliasProtection.objects.create(alias=alias, movers=["else@example.com"], changed_at=timezone.now())
    roll_back_release(actor=make_member(alias.tenant, Role.OPERATOR), release=release)
    assert roll_back_alias(actor=make_member(alias.tenant, Role.OPERATOR), alias=alias).revision == 4


def test_the_rollbacks_of_an_alias_are_told_to_its_tenant(alias: Alias) -> None:
    roll_back_release(actor=make_actor(), release=begin_release(alias=alias))
    names = {"tenant": alias.tenant.name, "alias": "support"}
    assert [row.revision for row in list_rollbacks(actor=make_member(alias.tenant, Role.VIEWER), **names)] == [3]
    with pytest.raises(NotFound):
        list_rollbacks(actor=make_member(make_tenant(), *Role), **names)


# --- withdrawals


WITHDRAW = {"yank": yank_version, "revoke": revoke_version}


@pytest.mark.parametrize("how", list(WITHDRAW))
@pytest.mark.parametrize("where", WHERE)
def test_withdrawing_the_candidate_rolls_back_its_release_in_the_same_transaction(
    alias: Alias, how: str, where: str, cooled: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    release = bring_to(alias, where)
    actor = make_member(alias.tenant, Role.REVIEWER)
    with django_capture_on_commit_callbacks(execute=True):
        WITHDRAW[how](actor=actor, version=release.candidate, reason="poisoned")
    release.refresh_from_db()
    assert (release.state, release.sentence) == ("rolled_back", "poisoned")
    assert not AliasSplit.objects.exists()
    assert Alias.objects.get(pk=alias.pk).version_id == alias.version_id
    record = AuditRecord.objects.get(action="tenant:release:roll_back")
    assert (record.actor["id"], record.reason) == (actor.id, "poisoned")
    assert cooled == [(release.candidate_id, "poisoned")]


@pytest.mark.parametrize("how", list(WITHDRAW))
@pytest.mark.parametrize("part", ["candidate", "shadow"])
def test_withdrawing_a_version_ends_the_splits_that_name_it(alias: Alias, how: str, part: str) -> None:
    bad, fine = (make_version(adapter=alias.adapter) for _number in range(2))
    other = point_alias(name="other", version=alias.version)
    parts: dict[str, Any] = {"candidate": fine, "shadow": fine} | {part: bad}
    set_split(actor=make_actor(), alias=alias, wish=SplitWish(**parts, basis_points=500))
    kept = set_split(actor=make_actor(), alias=other, wish=SplitWish(candidate=fine))
    WITHDRAW[how](actor=make_actor(), version=bad, reason="poisoned")
    assert list(AliasSplit.objects.all()) == [kept]
    assert Alias.objects.get(pk=alias.pk).revision == 2


def test_withdrawing_rolls_back_the_releases_of_all_aliases(alias: Alias) -> None:
    candidate = make_version(adapter=alias.adapter)
    releases = []
    for name in ("a", "b"):
        here = point_alias(name=name, version=alias.version)
        releases.append(run_release(begin_release(alias=here, candidate=candidate), until=CANARY))
    elsewhere = begin_release(alias=alias)
    revoke_version(actor=make_actor(), version=candidate, reason="poisoned")
    assert {Release.objects.get(pk=release.pk).state for release in releases} == {"rolled_back"}
    assert active_release(alias.pk) == elsewhere


def test_a_version_that_nothing_uses_is_withdrawn_as_ever(alias: Alias) -> None:
    version = make_version(adapter=alias.adapter)
    assert revoke_version(actor=make_actor(), version=version, reason="old").state == VersionState.REVOKED
    assert len(alias_history(alias.pk)) == 2


def test_a_release_across_adapters_goes_back_across_them(alias: Alias) -> None:
    sibling = make_adapter(tenant=alias.tenant, base_model=alias.adapter.base_model)
    release = begin_release(alias=alias, candidate=make_version(adapter=sibling))
    promoted = promote_release(actor=make_actor(), release=release)
    assert Alias.objects.get(pk=alias.pk).adapter == sibling
    roll_back_release(actor=make_actor(), release=promoted)
    assert Alias.objects.get(pk=alias.pk).adapter == alias.adapter


def test_an_outsider_learns_nothing_of_a_release(alias: Alias) -> None:
    outsider = make_member(make_tenant(), *Role)
    with pytest.raises(NotFound):
        roll_back_release(actor=outsider, release=begin_release(alias=alias))
