from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from registry.models import Adapter, ApiToken, Tenant
from registry.states import Role
from tests.api.registry.conftest import client_with
from tests.factories.registry import make_person, make_tenant

Caller = Callable[..., APIClient]
pytestmark = pytest.mark.django_db(transaction=True)


def make_token(admin: APIClient, **body: object) -> dict[str, str]:
    person = make_person(roles={Tenant.objects.get(name="acme"): [Role.VIEWER]})
    body = {"name": "ci", "kind": "person", "person_email": person.email, "scopes": ["read"], **body}
    answer = admin.post("/api/v1/tenants/acme/tokens", body, format="json")
    assert answer.status_code == 201, answer.json()
    made: dict[str, str] = answer.json()
    return made


def test_a_tokens_text_is_shown_once_and_never_kept(admin: APIClient, tenant: Tenant) -> None:
    made = make_token(admin)
    stored = ApiToken.objects.get(prefix=made["prefix"])
    assert made["token"] not in str(vars(stored))
    listed = admin.get("/api/v1/tenants/acme/tokens").json()["results"]
    assert all("token" not in token and "digest" not in token for token in listed)


def test_an_expired_token_is_refused_and_says_so(admin: APIClient, tenant: Tenant) -> None:
    made = make_token(admin, expires_in_days=1)
    ApiToken.objects.filter(prefix=made["prefix"]).update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = client_with(made["token"]).get("/api/v1/whoami")
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_revoked_token_is_refused(admin: APIClient, tenant: Tenant) -> None:
    made = make_token(admin)
    assert admin.delete(f"/api/v1/tenants/acme/tokens/{made['prefix']}").status_code == 204
    assert client_with(made["token"]).get("/api/v1/whoami").status_code == 401


@pytest.mark.parametrize(
    "text", ["", "lk_", "lk_000000000000_" + "a" * 43, "Bearer x", "lk_\x00_a", "lk_ü_" + "a" * 43]
)
def test_an_unknown_token_is_refused(tenant: Tenant, text: str) -> None:
    client = APIClient()
    answer = client.get("/api/v1/tenants", HTTP_AUTHORIZATION=f"Bearer {text}")
    assert answer.status_code == 401
    assert answer.json()["code"] == "not_authenticated"


def test_a_right_prefix_with_a_wrong_secret_is_refused(admin: APIClient, tenant: Tenant) -> None:
    made = make_token(admin)
    forged = made["token"][:-1] + ("a" if made["token"][-1] != "a" else "b")
    assert client_with(forged).get("/api/v1/whoami").status_code == 401


def test_a_token_grants_no_more_than_its_scopes(admin: APIClient, adapter: Adapter) -> None:
    person = make_person(roles={adapter.tenant: [Role.UPLOADER]})
    made = make_token(admin, person_email=person.email, scopes=["read"])
    answer = client_with(made["token"]).post(
        "/api/v1/tenants/acme/adapters", {"name": "x", "base_model": "tiny-base"}, format="json"
    )
    assert answer.status_code == 403
    assert "upload" in answer.json()["detail"]


def test_a_token_of_another_tenant_sees_nothing_here(admin: APIClient, adapter: Adapter) -> None:
    other = make_tenant(name="globex")
    person = make_person(roles={other: [Role.UPLOADER], adapter.tenant: [Role.UPLOADER]})
    made = admin.post(
        "/api/v1/tenants/globex/tokens",
        {"name": "t", "kind": "person", "person_email": person.email, "scopes": ["read", "upload"]},
        format="json",
    ).json()
    answer = client_with(made["token"]).get("/api/v1/tenants/acme/adapters")
    assert answer.status_code == 404


def test_a_token_can_not_be_given_to_a_stranger(admin: APIClient, tenant: Tenant) -> None:
    body = {"name": "t", "kind": "person", "person_email": "nobody@example.com", "scopes": ["read"]}
    answer = admin.post("/api/v1/tenants/acme/tokens", body, format="json")
    assert answer.status_code == 400
    assert answer.json()["field"] == "person_email"


def test_an_applications_token_may_only_infer(admin: APIClient, tenant: Tenant) -> None:
    body = {"name": "app", "kind": "application", "scopes": ["infer", "release"]}
    assert admin.post("/api/v1/tenants/acme/tokens", body, format="json").json()["field"] == "scopes"
    made = admin.post("/api/v1/tenants/acme/tokens", {**body, "scopes": ["infer"]}, format="json").json()
    assert client_with(made["token"]).get("/api/v1/tenants/acme/adapters").status_code == 404
