from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.models import Adapter, BaseModelRevision, Tenant, Version
from registry.services.adapters import create_adapter
from registry.services.base_models import register_base_revision
from registry.services.tokens import create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.factories.adapters import BASE_NAME, adapter_files, manifest_of, tiny_description
from tests.factories.registry import make_person, make_tenant
from workers.jobs.validation import validate_version

Caller = Callable[..., APIClient]


@pytest.fixture
def tenant(db: None) -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def base_revision(db: None) -> BaseModelRevision:
    return register_base_revision(
        actor=system_actor("test"), name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16
    )


@pytest.fixture
def adapter(tenant: Tenant, base_revision: BaseModelRevision) -> Adapter:
    return create_adapter(actor=system_actor("test"), tenant=tenant, name="support-tone", base_model=BASE_NAME)


@pytest.fixture
def as_role(tenant: Tenant) -> Caller:
    """``as_role(Role.UPLOADER)``: a client with a real token of a new member; the same role gives the same person."""
    made: dict[tuple[Role, ...], APIClient] = {}

    def client(*roles: Role, new: bool = False) -> APIClient:
        if new or roles not in made:
            person = make_person(roles={tenant: roles})
            token = create_tenant_token(
                actor=system_actor("test"),
                tenant=tenant,
                name="test",
                kind=TokenKind.PERSON,
                scopes=set(Scope) - {Scope.INFER, Scope.DEMAND, Scope.NODE, Scope.METRICS},
                person_email=person.email,
            )
            made[roles] = client_with(token.text)
        return made[roles]

    return client


@pytest.fixture
def admin(db: None) -> APIClient:
    person = make_person(is_platform_admin=True)
    token = create_platform_token(
        actor=system_actor("test"),
        name="admin",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ, Scope.ADMIN, Scope.AUDIT, Scope.RELEASE],
        person=person,
    )
    return client_with(token.text)


@pytest.fixture
def push(as_role: Caller, adapter: Adapter, store: object, sent: list[Any]) -> Callable[..., Version]:
    """Upload files as the uploader, validate them as the worker would, and return the version."""

    def upload(files: dict[str, bytes] | None = None, *, name: str | None = None) -> Version:
        content = files if files is not None else adapter_files()
        client = as_role(Role.UPLOADER)
        body = {"base_revision": "r1", "files": manifest_of(content), "name": name}
        started = client.post("/api/v1/tenants/acme/adapters/support-tone/versions", body, format="json")
        assert started.status_code == 201, started.json()
        for target in started.json()["uploads"]:
            if not target["stored"]:
                put_file(client, target, content[target["path"]])
        url = f"/api/v1/tenants/acme/adapters/support-tone/versions/{started.json()['name']}"
        assert client.post(f"{url}/finalize").status_code == 202
        version = Version.objects.get(pk=started.json()["id"])
        validate_version(version_id=version.pk)
        version.refresh_from_db()
        return version

    return upload


def client_with(token: str) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def put_file(client: APIClient, target: dict[str, Any], content: bytes) -> int:
    """Do a presigned PUT as an uploader would, without a token; returns the status."""
    path = target["url"].removeprefix("http://testserver")
    request: Any = APIClient()
    response = request.generic("PUT", path, content, content_type="application/octet-stream")
    return int(response.status_code)
