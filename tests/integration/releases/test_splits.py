"""Splits of an alias: who may set them, what may answer, what ends them, and what the database refuses by itself."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.errors import InvalidInput, LorekeeperError, PermissionDenied
from registry.models import AuditRecord, Version
from registry.services.tokens import create_tenant_token
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, Scope, TokenKind, VersionState
from releases.errors import RevisionChanged, TargetNotServable
from releases.models import Alias, AliasSplit
from releases.ports import PORTS
from releases.selectors import versions_aliased_since
from releases.services.aliases import roll_back_alias, set_alias
from releases.services.splits import SplitWish, clear_split, set_split
from tests.factories.registry import make_actor, make_adapter, make_member, make_person, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def alias() -> Alias:
    return point_alias(name="support", version=make_version())


@pytest.fixture
def candidate(alias: Alias) -> Version:
    return make_version(adapter=alias.adapter)


def split(alias: Alias, candidate: Version, **facts: Any) -> AliasSplit:
    return set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=candidate, **facts))


def actions() -> list[str]:
    return list(AuditRecord.objects.filter(object__kind="alias").order_by("seq").values_list("action", flat=True))


def seen() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT candidate_id, basis_points, salt, allow, deny, shadow_id FROM routing_aliases")
        return list(cursor.fetchall())


def test_a_split_is_what_gateways_see_and_the_audit_log_tells(alias: Alias, candidate: Version) -> None:
    shadow = make_version(adapter=alias.adapter)
    made = split(alias, candidate, basis_points=500, deny=("zed", "acme", "acme"), shadow=shadow, shadow_basis_points=9)
    assert seen() == [(candidate.pk, 500, made.salt, [], ["acme", "zed"], shadow.pk)]
    record = AuditRecord.objects.get(action="tenant:alias:set_split")
    assert record.before is None
    assert record.after
    assert (record.after["candidate_id"], record.after["basis_points"]) == (str(candidate.pk), 500)
    whole = clear_split(actor=make_actor(), alias=alias, reason="worse")
    assert not hasattr(whole, "split")
    assert [row[0] for row in seen()] == [None]
    told = AuditRecord.objects.get(action="tenant:alias:clear_split")
    assert (told.before, told.reason) == (record.after, "worse")


def test_the_salt_stays_while_the_candidate_is_the_same(alias: Alias, candidate: Version) -> None:
    salt = split(alias, candidate, basis_points=500).salt
    assert split(alias, candidate, basis_points=2500).salt == salt
    assert split(alias, make_version(adapter=alias.adapter), basis_points=500).salt != salt
    assert split(alias, candidate, salt="release-7").salt == "release-7"


def test_the_same_split_and_the_end_of_none_are_quiet(alias: Alias, candidate: Version) -> None:
    clear_split(actor=make_actor(), alias=alias)
    for _time in range(2):
        split(alias, candidate, basis_points=500)
    assert actions() == ["tenant:alias:set", "tenant:alias:set_split"]


def test_a_move_and_a_rollback_end_the_split_and_say_so(alias: Alias, candidate: Version) -> None:
    split(alias, make_version(adapter=alias.adapter), basis_points=500)
    moved = point_alias(name="support", version=candidate)
    assert not hasattr(moved, "split")
    split(moved, make_version(adapter=alias.adapter), basis_points=500)
    rolled = roll_back_alias(actor=make_actor(), alias=moved)
    assert not hasattr(rolled, "split")
    assert not AliasSplit.objects.exists()
    ended = "tenant:alias:clear_split"
    assert actions()[1:] == [
        "tenant:alias:set_split", ended, "tenant:alias:move",
        "tenant:alias:set_split", ended, "tenant:alias:roll_back",
    ]  # fmt: skip


def test_pointing_where_it_points_already_leaves_the_split(alias: Alias, candidate: Version) -> None:
    split(alias, candidate, basis_points=500)
    set_alias(actor=make_actor(), tenant=alias.tenant, name="support", adapter=alias.adapter, version=alias.version)
    assert AliasSplit.objects.exists()


def test_only_another_approved_version_of_the_tenant_and_base_model_may_answer(alias: Alias) -> None:
    sibling = make_version(adapter=make_adapter(tenant=alias.tenant, base_model=alias.adapter.base_model))
    assert split(alias, sibling).candidate == sibling
    refused = {
        "points at": alias.version,
        "candidate": make_version(adapter=alias.adapter, state=VersionState.CANDIDATE),
        "yanked": make_version(adapter=alias.adapter, state=VersionState.YANKED),
        "tenant and base model": make_version(),
        "base model": make_version(adapter=make_adapter(tenant=alias.tenant)),
    }
    for words, version in refused.items():
        with pytest.raises(TargetNotServable, match=words) as caught:
            split(alias, version)
        assert caught.value.field == "candidate"
        with pytest.raises(TargetNotServable, match=words) as caught:
            split(alias, sibling, shadow=version)
        assert caught.value.field == "shadow"


@pytest.mark.parametrize(
    ("field", "facts"),
    [
        ("basis_points", {"basis_points": 10_001}),
        ("shadow_basis_points", {"shadow_basis_points": -1}),
        ("shadow", {"shadow_basis_points": 1}),
        ("allow", {"allow": ("Not A Name",)}),
        ("deny", {"deny": ("x",) * 1001}),
    ],
)
def test_a_wish_that_says_nothing_possible_names_its_field(
    alias: Alias, candidate: Version, field: str, facts: dict[str, Any]
) -> None:
    with pytest.raises(LorekeeperError) as caught:
        split(alias, candidate, **facts)
    assert isinstance(caught.value, InvalidInput)
    assert caught.value.field == field


def test_an_unexpected_revision_is_refused(alias: Alias, candidate: Version) -> None:
    wish = SplitWish(candidate=candidate)
    with pytest.raises(RevisionChanged):
        set_split(actor=make_actor(), alias=alias, wish=wish, expected_revision=2)
    set_split(actor=make_actor(), alias=alias, wish=wish, expected_revision=1)


@pytest.mark.parametrize("role", list(Role))
def test_who_may_move_an_alias_may_split_it(alias: Alias, candidate: Version, role: Role) -> None:
    actor = make_member(alias.tenant, role)
    if role is Role.RELEASE_MANAGER:
        set_split(actor=actor, alias=alias, wish=SplitWish(candidate=candidate))
        clear_split(actor=actor, alias=alias)
        return
    with pytest.raises(PermissionDenied):
        set_split(actor=actor, alias=alias, wish=SplitWish(candidate=candidate))
    with pytest.raises(PermissionDenied):
        clear_split(actor=actor, alias=alias)


def test_candidate_and_shadow_are_warmed_and_keep_their_files(
    alias: Alias, candidate: Version, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(PORTS, "prewarm", lambda *, actor, version_id: asked.append(version_id))
    shadow, unused = (make_version(adapter=alias.adapter) for _number in range(2))
    with django_capture_on_commit_callbacks(execute=True):
        made = split(alias, candidate, shadow=shadow)
    assert asked == [candidate.pk, shadow.pk]
    kept = versions_aliased_since(version_ids=[candidate.pk, shadow.pk, unused.pk], since=made.changed_at)
    assert kept == {candidate.pk, shadow.pk}


def test_a_withdrawn_candidate_ends_the_split_and_the_alias_goes_on_answering(alias: Alias, candidate: Version) -> None:
    split(alias, candidate, basis_points=500)
    revoke_version(actor=make_actor(), version=candidate, reason="bad")
    assert [row[0] for row in seen()] == [None]
    assert AuditRecord.objects.get(action="tenant:alias:clear_split").reason == "bad"
    with pytest.raises(TargetNotServable):
        split(alias, candidate, basis_points=900)


def refused(sql: str, *params: str | int) -> str:
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
    return str(caught.value)


def test_the_database_refuses_what_the_service_would(alias: Alias, candidate: Version) -> None:
    made = split(alias, candidate, basis_points=500)
    change = "UPDATE releases_aliassplit SET {} WHERE id = %s"
    yanked = make_version(adapter=alias.adapter)
    yank_version(actor=make_actor(), version=yanked, reason="old")
    for version in (yanked, make_version(), make_version(adapter=make_adapter(tenant=alias.tenant))):
        assert "approved version" in refused(change.format("candidate_id = %s"), str(version.pk), made.pk)
        assert "approved version" in refused(change.format("shadow_id = %s"), str(version.pk), made.pk)
    assert "points to" in refused(change.format("candidate_id = %s"), str(alias.version_id), made.pk)
    assert "alias_split_shares" in refused(change.format("basis_points = 10001"), made.pk)
    assert "alias_split_shadow_known" in refused(change.format("shadow_basis_points = 1"), made.pk)
    other = point_alias(name="other", version=alias.version)
    assert "keeps its alias" in refused(change.format("alias_id = %s"), other.pk, made.pk)
    move = "UPDATE releases_alias SET version_id = %s, revision = revision + 1, moved_by = 'move' WHERE id = %s"
    assert "no split" in refused(move, str(make_version(adapter=alias.adapter).pk), alias.pk)


def test_a_split_is_set_shown_and_cleared_over_the_api(alias: Alias, candidate: Version) -> None:
    tenant = alias.tenant
    token = create_tenant_token(
        actor=system_actor("test"), tenant=tenant, name="t", kind=TokenKind.PERSON,
        scopes=[Scope.READ, Scope.RELEASE], person_email=make_person(roles={tenant: (Role.RELEASE_MANAGER,)}).email,
    )  # fmt: skip
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.text}")
    base = f"/api/v1/tenants/{tenant.name}/aliases/support"
    before = client.get(base)
    assert before.json()["split"] is None
    body = {"adapter": alias.adapter.name, "version": candidate.name, "basis_points": 500, "allow": [tenant.name]}
    assert client.put(f"{base}/split", body, format="json", HTTP_IF_MATCH='"other"').status_code == 412
    made = client.put(f"{base}/split", body, format="json", HTTP_IF_MATCH=before.headers["ETag"])
    assert made.status_code == 200, made.json()
    told = made.json()["split"]
    assert (told["version_id"], told["basis_points"], told["allow"]) == (str(candidate.pk), 500, [tenant.name])
    assert client.get(base).json() == made.json()
    assert client.delete(f"{base}/split", HTTP_IF_MATCH='"other"').status_code == 412
    assert client.delete(f"{base}/split?because=worse").status_code == 400
    assert client.delete(f"{base}/split?reason=worse").json()["split"] is None
    assert AuditRecord.objects.get(action="tenant:alias:clear_split").reason == "worse"
    bad = client.put(f"{base}/split", {**body, "version": alias.version.name}, format="json")
    assert (bad.status_code, bad.json()["code"], bad.json()["field"]) == (409, "target_not_servable", "candidate")
