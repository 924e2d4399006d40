"""Aliases that other tenants may call: names that never collide, and what gateways see of them."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from rest_framework.test import APIClient

from registry.actors import Actor, system_actor
from registry.errors import InvalidInput, NameTaken, PermissionDenied
from registry.models import AuditRecord, Tenant
from registry.services.tokens import create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind
from releases.models import Alias, AliasGrant
from releases.services.aliases import set_alias
from releases.services.sharing import end_grant, grant_alias
from releases.services.splits import SplitWish, set_split
from tests.factories.registry import make_actor, make_adapter, make_member, make_person, make_tenant, make_version
from tests.factories.releases import make_default, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def alias() -> Alias:
    owner = make_tenant(name="owner")
    return point_alias(name="support", version=make_version(adapter=make_adapter(tenant=owner)))


@pytest.fixture
def guest() -> Tenant:
    return make_tenant(name="guest")


def admin() -> Actor:
    return make_actor(make_person(is_platform_admin=True))


def share(alias: Alias, tenant: Tenant, name: str = "") -> AliasGrant:
    return grant_alias(actor=admin(), alias=alias, tenant=tenant, name=name)


def rows(tenant: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT alias, version_id, revision, candidate_id, owner FROM routing_aliases WHERE tenant = %s ORDER BY 1",
            [tenant],
        )
        return list(cursor.fetchall())


def noted() -> list[str]:
    """What gateways were told of aliases so far."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM routing_change WHERE kind = 'aliases' ORDER BY seq")
        return [key for (key,) in cursor.fetchall()]


def test_a_grant_is_a_row_of_the_callers_with_the_owners_version(alias: Alias, guest: Tenant) -> None:
    share(alias, guest, "assistant")
    candidate = make_version(adapter=alias.adapter)
    set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=candidate, basis_points=500))
    assert rows("guest") == [("assistant", alias.version_id, 1, candidate.pk, "owner")]
    assert rows("owner") == [("support", alias.version_id, 1, candidate.pk, "owner")]


def test_gateways_hear_of_the_grant_of_every_change_and_of_its_end(alias: Alias, guest: Tenant) -> None:
    before = len(noted())
    share(alias, guest, "assistant")
    assert noted()[before:] == ["guest/assistant"]
    before = len(noted())
    moved = point_alias(name="support", version=make_version(adapter=alias.adapter))
    assert sorted(noted()[before:]) == ["guest/assistant", "owner/support"]
    before = len(noted())
    set_split(actor=make_actor(), alias=moved, wish=SplitWish(candidate=make_version(adapter=alias.adapter)))
    assert sorted(noted()[before:]) == ["guest/assistant", "owner/support"]
    before = len(noted())
    end_grant(actor=admin(), alias=alias, tenant=guest)
    assert noted()[before:] == ["guest/assistant"]
    assert rows("guest") == []


def test_a_grant_and_an_own_alias_never_have_one_name(alias: Alias, guest: Tenant) -> None:
    own = make_version(adapter=make_adapter(tenant=guest))
    point_alias(name="mine", version=own)
    with pytest.raises(NameTaken):
        share(alias, guest, "mine")
    share(alias, guest)
    with pytest.raises(NameTaken, match="support"):
        set_alias(actor=make_actor(), tenant=guest, name="support", adapter=own.adapter, version=own)
    with pytest.raises(NameTaken):
        share(point_alias(name="other", version=alias.version), guest, "support")
    end_grant(actor=admin(), alias=alias, tenant=guest)
    assert point_alias(name="support", version=own).revision == 1


def test_one_tenant_calls_an_alias_by_one_name(alias: Alias, guest: Tenant) -> None:
    assert share(alias, guest, "assistant") == share(alias, guest, "assistant")
    with pytest.raises(NameTaken, match="assistant"):
        share(alias, guest, "another")
    assert AuditRecord.objects.filter(action="tenant:alias:grant").count() == 1


def test_a_default_is_shared_under_another_name(alias: Alias, guest: Tenant) -> None:
    default = make_default(alias.version)
    with pytest.raises(InvalidInput):
        share(default, guest)
    assert share(default, guest, "assistant").name == "assistant"


def test_an_alias_is_not_granted_to_its_own_tenant(alias: Alias) -> None:
    with pytest.raises(InvalidInput):
        share(alias, alias.tenant, "again")


@pytest.mark.parametrize("role", Role)
def test_no_role_of_either_tenant_shares_an_alias(alias: Alias, guest: Tenant, role: Role) -> None:
    for tenant in (alias.tenant, guest):
        with pytest.raises(PermissionDenied):
            grant_alias(actor=make_member(tenant, role), alias=alias, tenant=guest)
        with pytest.raises(PermissionDenied):
            end_grant(actor=make_member(tenant, role), alias=alias, tenant=guest)


def test_a_grant_and_its_end_are_recorded_once_each_on_the_owners_chain(alias: Alias, guest: Tenant) -> None:
    share(alias, guest, "assistant")
    for _time in range(2):
        end_grant(actor=admin(), alias=alias, tenant=guest, reason="moved out")
    found = AuditRecord.objects.filter(chain="owner", action__contains="grant").order_by("seq")
    assert [(row.action, row.before, row.after, row.reason) for row in found] == [
        ("tenant:alias:grant", None, {"tenant": "guest", "name": "assistant"}, ""),
        ("tenant:alias:end_grant", {"tenant": "guest", "name": "assistant"}, None, "moved out"),
    ]


GRANT = "INSERT INTO releases_aliasgrant (alias_id, tenant_id, name, granted_at)"
ALIAS = """
    INSERT INTO releases_alias (tenant_id, name, adapter_id, version_id, revision, moved_by, updated_at)
    SELECT tenant_id, %s, adapter_id, version_id, 1, 'set', now() FROM releases_alias WHERE name = 'mine'
"""


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"{GRANT} VALUES ({{a}}, {{g}}, 'mine', now())", "has an alias"),
        (f"{GRANT} VALUES ({{a}}, {{o}}, 'x', now())", "own tenant"),
        (f"{GRANT} VALUES ({{a}}, {{g}}, 'x.y', now())", "dot"),
        ("UPDATE releases_aliasgrant SET name = 'y'", "ends"),
        (ALIAS % "'granted'", "calls another alias"),
        (ALIAS % "'another.default'", "default of an adapter"),
    ],
)
def test_the_database_keeps_names_apart_whoever_writes(alias: Alias, guest: Tenant, statement: str, words: str) -> None:
    point_alias(name="mine", version=make_version(adapter=make_adapter(tenant=guest)))
    share(point_alias(name="second", version=alias.version), guest, "granted")
    names = {"a": alias.pk, "g": guest.pk, "o": alias.tenant_id}
    with pytest.raises(DatabaseError, match=words), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(**names))


def member(tenant: Tenant) -> APIClient:
    person = make_person(roles={tenant: list(Role)})
    token = create_tenant_token(
        actor=system_actor("test"),
        tenant=tenant,
        name="test",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ, Scope.RELEASE],
        person_email=person.email,
    )
    return _client(token.text)


def platform() -> APIClient:
    person = make_person(is_platform_admin=True)
    token = create_platform_token(
        actor=system_actor("test"), name="t", kind=TokenKind.PERSON, scopes=[Scope.READ, Scope.ADMIN], person=person
    )
    return _client(token.text)


def _client(token: str) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def test_an_alias_is_shared_and_taken_back_over_the_api(alias: Alias, guest: Tenant) -> None:
    url = "/api/v1/tenants/owner/aliases/support/grants"
    made: Any = platform().post(url, {"tenant": "guest", "name": "assistant"}, format="json")
    assert (made.status_code, made.json()["tenant"], made.json()["name"]) == (201, "guest", "assistant")
    assert member(alias.tenant).get(url).json()["results"] == [made.json()]
    assert platform().delete(f"{url}/guest?reason=over").status_code == 204
    assert member(alias.tenant).get(url).json()["results"] == []
    assert platform().delete(f"{url}/nobody").status_code == 404
    assert member(alias.tenant).post(url, {"tenant": "guest"}, format="json").status_code == 403


def test_a_grantee_sees_the_name_and_nothing_else_of_the_owner(alias: Alias, guest: Tenant) -> None:
    share(alias, guest, "assistant")
    client = member(guest)
    listed = client.get("/api/v1/tenants/guest/shared-aliases")
    assert [set(row) for row in listed.json()["results"]] == [{"name", "granted_at"}]
    assert b"owner" not in listed.content
    assert client.get("/api/v1/tenants/guest/aliases").json()["results"] == []
    for path in ("aliases/assistant", "aliases/assistant/history", "aliases/assistant/grants"):
        assert client.get(f"/api/v1/tenants/guest/{path}").status_code == 404
    for path in ("aliases", "aliases/support", "aliases/support/history", "shared-aliases", "adapters"):
        assert client.get(f"/api/v1/tenants/owner/{path}").status_code == 404
