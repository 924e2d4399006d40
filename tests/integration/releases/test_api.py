"""The HTTP surface of releases: status codes, documents, and errors with their field."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.models import Adapter, Tenant, Version
from registry.services.tokens import create_tenant_token
from registry.states import Role, Scope, TokenKind, VersionState
from tests.factories.registry import make_adapter, make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def adapter() -> Adapter:
    return make_adapter(tenant=make_tenant(name="acme"))


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    return [make_version(adapter=adapter, name=name) for name in ("v1", "v2")]


def member(tenant: Tenant, *roles: Role) -> APIClient:
    person = make_person(roles={tenant: roles})
    token = create_tenant_token(
        actor=system_actor("test"),
        tenant=tenant,
        name="test",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ, Scope.RELEASE],
        person_email=person.email,
    )
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.text}")
    return client


@pytest.fixture
def manager(adapter: Adapter) -> APIClient:
    return member(adapter.tenant, Role.RELEASE_MANAGER)


def put(client: APIClient, version: Version, *, name: str = "support", **facts: Any) -> Any:
    body = {"adapter": version.adapter.name, "version": version.name, **facts}
    return client.put(f"/api/v1/tenants/acme/aliases/{name}", body, format="json")


def test_an_alias_is_set_moved_shown_and_rolled_back(manager: APIClient, versions: list[Version]) -> None:
    made = put(manager, versions[0])
    assert made.status_code == 200, made.json()
    names = {"tenant", "name", "adapter", "version", "version_id", "revision", "updated_at", "split", "protection"}
    assert set(made.json()) == names
    moved = put(manager, versions[1], expected_revision=1, reason="better tone").json()
    assert (moved["version"], moved["version_id"], moved["revision"]) == ("v2", str(versions[1].pk), 2)
    rolled = manager.post("/api/v1/tenants/acme/aliases/support/rollback", {"reason": "worse"}, format="json")
    assert (rolled.status_code, rolled.json()["version"], rolled.json()["revision"]) == (200, "v1", 3)
    viewer = member(versions[0].adapter.tenant, Role.VIEWER)
    assert viewer.get("/api/v1/tenants/acme/aliases/support").json() == rolled.json()
    assert viewer.get("/api/v1/tenants/acme/aliases").json()["results"] == [rolled.json()]
    rows = viewer.get("/api/v1/tenants/acme/aliases/support/history").json()["results"]
    assert [(row["revision"], row["kind"], row["version"], row["previous_version"]) for row in rows] == [
        (3, "rollback", "v1", "v2"),
        (2, "move", "v2", "v1"),
        (1, "set", "v1", None),
    ]
    assert (rows[0]["reason"], rows[0]["adapter"]) == ("worse", versions[0].adapter.name)
    assert set(rows[0]["actor"]) == {"kind", "id", "name"}


def test_a_rollback_needs_no_body_and_a_repeated_one_is_harmless(manager: APIClient, versions: list[Version]) -> None:
    for version in versions:
        put(manager, version)
    url = "/api/v1/tenants/acme/aliases/support/rollback"
    for _time in range(2):
        assert manager.post(url, {"from_revision": 2}, format="json").json()["revision"] == 3
    nothing = manager.post(url)
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_to_roll_back_to")


def test_refusals_name_what_is_wrong(manager: APIClient, adapter: Adapter, versions: list[Version]) -> None:
    candidate = make_version(adapter=adapter, state=VersionState.CANDIDATE)
    refused = put(manager, candidate)
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (
        409,
        "target_not_servable",
        "version",
    )
    put(manager, versions[0])
    changed = put(manager, versions[1], expected_revision=7)
    assert (changed.status_code, changed.json()["code"]) == (409, "revision_changed")
    assert put(manager, versions[0], name="Not-A-Name").status_code == 400
    assert put(manager, make_version()).json()["field"] == "adapter"
    unknown = manager.get("/api/v1/tenants/acme/aliases/nope")
    assert (unknown.status_code, unknown.json()["field"]) == (404, "alias")
    bad = manager.put("/api/v1/tenants/acme/aliases/support", {"adapter": "x"}, format="json")
    assert (bad.status_code, bad.json()["field"]) == (400, "version")


def test_others_may_not_move_and_strangers_do_not_see(adapter: Adapter, versions: list[Version]) -> None:
    uploader = member(adapter.tenant, Role.UPLOADER)
    assert put(uploader, versions[0]).status_code == 403
    stranger = member(make_tenant(), *Role)
    assert put(stranger, versions[0]).status_code == 404
    assert stranger.get("/api/v1/tenants/acme/aliases").status_code == 404
    assert APIClient(raise_request_exception=False).get("/api/v1/tenants/acme/aliases").status_code == 401
