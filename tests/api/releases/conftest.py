from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.models import Adapter, Person, Tenant, Version
from registry.services.tokens import create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.factories.registry import make_adapter, make_person, make_tenant, make_version
from tests.factories.releases import point_alias

AT_ONCE = "approvals: 0"
Member = Callable[..., "Caller"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A member of ``acme`` with a token, and what the releases of its alias ``support`` answer."""

    person: Person
    token: str
    client: APIClient = field(default_factory=lambda: APIClient(raise_request_exception=False))

    def get(self, path: str, **params: Any) -> Any:
        return self.client.get(f"/api/v1/tenants/acme/{path}", params, headers=self._headers)

    def put(self, path: str, body: dict[str, Any], **headers: str) -> Any:
        return self.client.put(
            f"/api/v1/tenants/acme/{path}", body, format="json", headers={**self._headers, **headers}
        )

    def post(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.client.post(
            f"/api/v1/tenants/acme/{path}", body or {}, format="json", headers={**self._headers, **headers}
        )

    def make(self, candidate: Version, **facts: Any) -> Any:
        body = {"adapter": candidate.adapter.name, "version": candidate.name, **facts}
        return self.post("aliases/support/releases", body)

    def tell(self, verb: str, body: dict[str, Any] | None = None, *, number: int = 1) -> Any:
        return self.post(f"aliases/support/releases/{number}/{verb}", body)

    def release(self, number: int = 1) -> Any:
        answer = self.get(f"aliases/support/releases/{number}")
        assert answer.status_code == 200, answer.json()
        return answer.json()

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture
def tenant(db: None) -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def adapter(tenant: Tenant) -> Adapter:
    return make_adapter(tenant=tenant, name="tone")


@pytest.fixture
def versions(adapter: Adapter) -> list[Version]:
    """``v1``, where the alias ``support`` points, ``v2`` and ``v3``."""
    made = [make_version(adapter=adapter, name=name) for name in ("v1", "v2", "v3")]
    point_alias(name="support", version=made[0])
    return made


@pytest.fixture
def member(tenant: Tenant) -> Member:
    """``member(Role.OPERATOR)``: a new member with a token that has every scope of people."""

    def join(*roles: Role, email: str | None = None, of: Tenant = tenant) -> Caller:
        person = make_person(roles={of: roles}, email=email)
        token = create_tenant_token(
            actor=system_actor("test"),
            tenant=of,
            name="test",
            kind=TokenKind.PERSON,
            scopes=[Scope.READ, Scope.RELEASE, Scope.APPROVE, Scope.OPERATE],
            person_email=person.email,
        )
        return Caller(person, token.text)

    return join


@pytest.fixture
def ada(member: Member) -> Caller:
    """A release manager."""
    return member(Role.RELEASE_MANAGER, email="ada@example.com")


@pytest.fixture
def ben(member: Member) -> Caller:
    """Another one."""
    return member(Role.RELEASE_MANAGER, email="ben@example.com")
