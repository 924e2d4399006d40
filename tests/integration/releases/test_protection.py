"""Protected aliases: who says so, whom it holds up, and what the database holds to by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from rest_framework.test import APIClient

from registry.actors import Actor, system_actor
from registry.errors import InvalidInput, PermissionDenied
from registry.models import AuditRecord, Version
from registry.services.tokens import create_platform_token
from registry.states import Role, Scope, TokenKind
from releases.errors import ReleaseNeeded
from releases.models import Alias, AliasProtection, Release
from releases.services.aliases import roll_back_alias, set_alias
from releases.services.protection import protect_alias, unprotect_alias
from releases.services.releases.verbs import pause_release, promote_release, resume_release, retry_release
from releases.services.splits import SplitWish, clear_split, set_split
from releases.states import ReleaseState
from tests.factories.registry import make_actor, make_member, make_person, make_version
from tests.factories.releases import begin_release, commit, point_alias, run_release

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def alias() -> Alias:
    return point_alias(name="support", version=make_version())


@pytest.fixture
def manager(alias: Alias) -> Actor:
    return make_member(alias.tenant, Role.RELEASE_MANAGER)


def admin() -> Actor:
    return make_actor(make_person(is_platform_admin=True))


def move(alias: Alias, actor: Actor) -> Alias:
    version = make_version(adapter=alias.adapter)
    return set_alias(actor=actor, tenant=alias.tenant, name=alias.name, adapter=alias.adapter, version=version)


def test_a_protected_alias_is_moved_and_split_by_releases_alone(alias: Alias, manager: Actor) -> None:
    protect_alias(actor=admin(), alias=alias)
    with pytest.raises(ReleaseNeeded):
        move(alias, manager)
    with pytest.raises(ReleaseNeeded):
        set_split(actor=manager, alias=alias, wish=SplitWish(candidate=make_version(adapter=alias.adapter)))
    release = run_release(begin_release(alias=alias, actor=manager), until=2)
    commit()
    assert promote_release(actor=manager, release=release).alias.version == release.candidate
    commit()


def test_a_protected_alias_is_rolled_back_by_whoever_may(alias: Alias) -> None:
    before = alias.version
    move(alias, make_actor())
    commit()
    protect_alias(actor=admin(), alias=alias, movers=[make_member(alias.tenant, Role.RELEASE_MANAGER).id])
    operator = make_member(alias.tenant, Role.OPERATOR)
    assert roll_back_alias(actor=operator, alias=alias).version == before
    commit()


def test_only_the_movers_that_are_named_may_move_it(alias: Alias, manager: Actor) -> None:
    other = make_member(alias.tenant, Role.RELEASE_MANAGER)
    protect_alias(actor=admin(), alias=alias, movers=[manager.id.upper()], needs_release=False)
    assert move(alias, manager).revision == 2
    with pytest.raises(PermissionDenied, match=manager.id):
        move(alias, other)
    with pytest.raises(PermissionDenied):
        begin_release(alias=Alias.objects.get(pk=alias.pk), actor=other)
    commit()


@pytest.mark.parametrize("verb", [resume_release, retry_release])
def test_only_the_movers_that_are_named_carry_a_paused_release_on(
    alias: Alias, manager: Actor, verb: Callable[..., Release]
) -> None:
    protect_alias(actor=admin(), alias=alias, movers=[manager.id])
    operator = make_member(alias.tenant, Role.OPERATOR)
    release = run_release(begin_release(alias=alias, actor=manager))
    paused = pause_release(actor=operator, release=release)
    with pytest.raises(PermissionDenied, match=manager.id):
        verb(actor=operator, release=paused)
    assert Release.objects.get(pk=release.pk).state == ReleaseState.PAUSED
    assert verb(actor=manager, release=paused).state == ReleaseState.PREWARMING


def test_without_protection_everybody_whose_role_allows_it_moves_it(alias: Alias, manager: Actor) -> None:
    protect_alias(actor=admin(), alias=alias)
    unprotect_alias(actor=admin(), alias=alias)
    assert move(alias, manager).revision == 2


def test_a_split_from_before_the_protection_can_be_ended_by_hand(alias: Alias, manager: Actor) -> None:
    set_split(actor=manager, alias=alias, wish=SplitWish(candidate=make_version(adapter=alias.adapter), basis_points=9))
    commit()
    protect_alias(actor=admin(), alias=alias)
    clear_split(actor=manager, alias=alias)
    commit()


@pytest.mark.parametrize("role", Role)
def test_no_role_of_the_tenant_protects_an_alias(alias: Alias, role: Role) -> None:
    member = make_member(alias.tenant, role)
    with pytest.raises(PermissionDenied):
        protect_alias(actor=member, alias=alias)
    with pytest.raises(PermissionDenied):
        unprotect_alias(actor=member, alias=alias)


def test_movers_are_members_who_may_move_aliases(alias: Alias) -> None:
    for stranger in (make_person(), make_person(roles={alias.tenant: [Role.UPLOADER]})):
        with pytest.raises(InvalidInput, match=stranger.email) as caught:
            protect_alias(actor=admin(), alias=alias, movers=[stranger.email])
        assert caught.value.field == "movers"
    with pytest.raises(InvalidInput, match="At most"):
        protect_alias(actor=admin(), alias=alias, movers=[f"p{number}@example.com" for number in range(101)])


def test_every_change_of_a_protection_is_recorded_once(alias: Alias, manager: Actor) -> None:
    for needs_release in (True, True, False):
        protect_alias(actor=admin(), alias=alias, movers=[manager.id], needs_release=needs_release)
    for _time in range(2):
        unprotect_alias(actor=admin(), alias=alias)
    found = AuditRecord.objects.filter(action__contains="protect").order_by("seq")
    told = [(row.action, row.before, row.after) for row in found]
    strict, lax = ({"movers": [manager.id], "needs_release": needs} for needs in (True, False))
    assert told == [
        ("tenant:alias:protect", None, strict),
        ("tenant:alias:protect", strict, lax),
        ("tenant:alias:unprotect", lax, None),
    ]


def move_row(alias: Alias, version: Version) -> None:
    """Move it past the services, with its row of history."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE releases_alias SET version_id = %s, revision = revision + 1, moved_by = 'move' WHERE id = %s",
            [version.pk, alias.pk],
        )
        cursor.execute(
            "INSERT INTO releases_aliasrevision (alias_id, number, version_id, previous_version_id, kind, actor_kind,"
            " actor_id, actor_name, reason, at) VALUES (%s, 2, %s, %s, 'move', 'person', 'x', 'x', '', now())",
            [alias.pk, version.pk, alias.version_id],
        )


def test_the_database_lets_no_move_of_a_protected_alias_through_but_a_promotion(alias: Alias) -> None:
    protect_alias(actor=admin(), alias=alias)
    commit()
    with pytest.raises(DatabaseError, match="moved by a promoted release"), transaction.atomic():
        move_row(alias, make_version(adapter=alias.adapter))
        commit()


def test_the_database_lets_no_split_of_a_protected_alias_through_but_its_releases(alias: Alias) -> None:
    protect_alias(actor=admin(), alias=alias)
    candidate = make_version(adapter=alias.adapter)
    with pytest.raises(DatabaseError, match="split by its release"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO releases_aliassplit (alias_id, candidate_id, basis_points, salt, allow, deny,"
                " shadow_basis_points, changed_at) VALUES (%s, %s, 1, 's', '{}', '{}', 0, now())",
                [alias.pk, candidate.pk],
            )
        commit()


def client_of(email: str | None = None) -> APIClient:
    person = make_person(is_platform_admin=True)
    token = create_platform_token(
        actor=system_actor("test"), name="t", kind=TokenKind.PERSON, scopes=[Scope.READ, Scope.ADMIN], person=person
    )
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.text}")
    return client


def test_a_protection_is_written_shown_and_ended_over_the_api(alias: Alias, manager: Actor) -> None:
    client, url = client_of(), f"/api/v1/tenants/{alias.tenant.name}/aliases/support"
    assert client.get(f"{url}/protection").status_code == 404
    written: Any = client.put(f"{url}/protection", {"movers": [manager.id]}, format="json")
    assert (written.status_code, written.json()["movers"], written.json()["needs_release"]) == (200, [manager.id], True)
    assert client.get(f"{url}/protection").json() == written.json()
    assert client.get(url).json()["protection"] == written.json()
    stale = client.put(f"{url}/protection", {}, format="json", HTTP_IF_MATCH='"another"')
    assert stale.status_code == 412
    assert client.delete(f"{url}/protection").status_code == 204
    assert client.get(url).json()["protection"] is None
    assert not AliasProtection.objects.exists()
