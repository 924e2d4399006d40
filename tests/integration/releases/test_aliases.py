from typing import Any
from uuid import UUID

import pytest

from registry.errors import InvalidInput
from registry.models import Adapter, AuditRecord, Version
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, VersionState
from releases.errors import NothingToRollBackTo, RevisionChanged, TargetNotServable
from releases.models import Alias, AliasRevision
from releases.ports import PORTS
from releases.services.aliases import roll_back_alias, set_alias
from tests.factories.registry import make_actor, make_adapter, make_member, make_version
from tests.factories.releases import make_alias, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def adapter() -> Adapter:
    return make_adapter()


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    return [make_version(adapter=adapter) for _number in range(4)]


@pytest.fixture
def warmed(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    asked: list[UUID] = []
    monkeypatch.setattr(PORTS, "prewarm", lambda *, actor, version_id: asked.append(version_id))
    return asked


def point(name: str, *versions: Version) -> Alias:
    """The alias after having pointed at each of the versions in turn."""
    alias = None
    for version in versions:
        alias = point_alias(name=name, version=version)
    assert alias is not None
    return alias


def history(alias: Alias) -> list[tuple[int, str, str]]:
    rows = AliasRevision.objects.filter(alias=alias).order_by("number").select_related("version")
    return [(row.number, row.kind, row.version.name) for row in rows]


def actions(alias: Alias) -> list[str]:
    records = AuditRecord.objects.filter(chain=alias.tenant.name, object__kind="alias").order_by("seq")
    return [record.action for record in records]


def test_an_alias_is_made_and_moved_with_its_history_and_one_record_each(versions: list[Version]) -> None:
    manager = make_member(versions[0].adapter.tenant, Role.RELEASE_MANAGER)
    alias = point_alias(name="support", version=versions[0], actor=manager)
    moved = set_alias(
        actor=manager,
        tenant=alias.tenant,
        name="support",
        adapter=alias.adapter,
        version=versions[1],
        expected_revision=1,
        reason="better tone",
    )
    assert (moved.revision, moved.version) == (2, versions[1])
    assert history(alias) == [(1, "set", versions[0].name), (2, "move", versions[1].name)]
    last = AliasRevision.objects.get(alias=alias, number=2)
    assert (last.previous_version, last.actor_id, last.reason) == (versions[0], manager.id, "better tone")
    assert actions(alias) == ["tenant:alias:set", "tenant:alias:move"]
    record = AuditRecord.objects.get(action="tenant:alias:move")
    assert record.before
    assert record.before["version_id"] == str(versions[0].pk)
    assert record.after
    assert record.after["root_digest"] == versions[1].root_digest
    assert record.reason == "better tone"


def test_pointing_where_it_points_already_changes_and_records_nothing(versions: list[Version]) -> None:
    alias = point("support", versions[0], versions[0], versions[0])
    assert alias.revision == 1
    assert actions(alias) == ["tenant:alias:set"]


@pytest.mark.parametrize(
    "state", [VersionState.UPLOADING, VersionState.VALIDATING, VersionState.REJECTED, VersionState.CANDIDATE]
)
def test_a_version_that_was_never_approved_is_no_target(adapter: Adapter, state: VersionState) -> None:
    with pytest.raises(TargetNotServable, match=state.value):
        make_alias(version=make_version(adapter=adapter, state=state))
    assert not Alias.objects.exists()


@pytest.mark.parametrize("state", [VersionState.YANKED, VersionState.REVOKED])
def test_a_withdrawn_version_is_no_target(adapter: Adapter, state: VersionState) -> None:
    with pytest.raises(TargetNotServable):
        make_alias(version=make_version(adapter=adapter, state=state))


def test_another_tenants_version_is_no_target(adapter: Adapter) -> None:
    foreign = make_version()
    with pytest.raises(TargetNotServable):
        set_alias(actor=make_actor(), tenant=adapter.tenant, name="support", adapter=foreign.adapter, version=foreign)


def test_another_adapters_version_is_no_target(adapter: Adapter) -> None:
    other = make_version(adapter=make_adapter(tenant=adapter.tenant))
    with pytest.raises(TargetNotServable):
        set_alias(actor=make_actor(), tenant=adapter.tenant, name="support", adapter=adapter, version=other)


def test_an_alias_may_move_to_another_adapter_of_its_tenant_and_back(versions: list[Version]) -> None:
    other = make_version(adapter=make_adapter(tenant=versions[0].adapter.tenant))
    alias = point("support", versions[0], other)
    assert alias.adapter == other.adapter
    assert roll_back_alias(actor=make_actor(), alias=alias).adapter == versions[0].adapter


def test_an_unexpected_revision_is_refused(versions: list[Version]) -> None:
    alias = point("support", versions[0], versions[1])
    facts: dict[str, Any] = {
        "actor": make_actor(),
        "tenant": alias.tenant,
        "name": "support",
        "adapter": alias.adapter,
        "version": versions[2],
    }
    for expected in (0, 1, 3):
        with pytest.raises(RevisionChanged, match="revision 2"):
            set_alias(**facts, expected_revision=expected)
    assert set_alias(**facts, expected_revision=2).revision == 3


def test_a_new_alias_can_be_asked_for_as_new(versions: list[Version]) -> None:
    facts: dict[str, Any] = {
        "actor": make_actor(),
        "tenant": versions[0].adapter.tenant,
        "name": "support",
        "adapter": versions[0].adapter,
        "version": versions[0],
    }
    with pytest.raises(RevisionChanged):
        set_alias(**facts, expected_revision=1)
    assert set_alias(**facts, expected_revision=0).revision == 1
    with pytest.raises(RevisionChanged):
        set_alias(**facts, expected_revision=0)


@pytest.mark.parametrize("name", ["", "Support", "a/b", "-a", "a" * 64, "..", "a b"])
def test_a_name_that_is_none_is_refused(versions: list[Version], name: str) -> None:
    with pytest.raises(InvalidInput):
        point_alias(name=name, version=versions[0])


def test_rolling_back_twice_goes_further_back_and_then_says_that_nothing_is_left(versions: list[Version]) -> None:
    alias = point("support", *versions[:3])
    actor = make_actor()
    assert roll_back_alias(actor=actor, alias=alias, reason="worse").version == versions[1]
    assert roll_back_alias(actor=actor, alias=alias).version == versions[0]
    with pytest.raises(NothingToRollBackTo):
        roll_back_alias(actor=actor, alias=alias)
    assert history(alias)[3:] == [(4, "rollback", versions[1].name), (5, "rollback", versions[0].name)]
    assert actions(alias)[3:] == ["tenant:alias:roll_back", "tenant:alias:roll_back"]


def test_a_repeated_rollback_request_rolls_back_once(versions: list[Version]) -> None:
    alias = point("support", *versions[:3])
    first = roll_back_alias(actor=make_actor(), alias=alias, from_revision=3)
    again = roll_back_alias(actor=make_actor(), alias=alias, from_revision=3)
    assert (first.revision, again.revision, again.version) == (4, 4, versions[1])
    with pytest.raises(RevisionChanged):
        roll_back_alias(actor=make_actor(), alias=alias, from_revision=9)


def test_a_rollback_leaves_a_revoked_version_and_passes_over_revoked_ones(versions: list[Version]) -> None:
    alias = point("support", *versions)
    for version in versions[2:]:
        revoke_version(actor=make_actor(), version=version, reason="poisoned")
    assert roll_back_alias(actor=make_actor(), alias=alias).version == versions[1]


def test_a_rollback_may_go_back_to_a_yanked_version(versions: list[Version]) -> None:
    alias = point("support", *versions[:2])
    yank_version(actor=make_actor(), version=versions[0], reason="superseded")
    rolled = roll_back_alias(actor=make_actor(), alias=alias)
    assert (rolled.version, rolled.moved_by) == (versions[0], "rollback")


def test_the_new_target_is_asked_to_be_warm_after_the_commit(
    versions: list[Version], warmed: list[UUID], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        alias = point("support", versions[0], versions[1], versions[1])
        roll_back_alias(actor=make_actor(), alias=alias)
        assert warmed == []
    assert warmed == [versions[0].pk, versions[1].pk, versions[0].pk]


def test_a_move_stands_even_if_nothing_can_be_warmed(
    versions: list[Version], monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any, caplog: Any
) -> None:
    def fail(**_facts: Any) -> None:
        raise RuntimeError("no cache control today")

    monkeypatch.setattr(PORTS, "prewarm", fail)
    with django_capture_on_commit_callbacks(execute=True):
        alias = point("support", versions[0])
    assert Alias.objects.get(pk=alias.pk).version == versions[0]
