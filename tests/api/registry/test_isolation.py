"""A tenant's existence is its own: who isn't a member gets the same answer as if it weren't there."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.models import Version
from registry.services.tokens import create_tenant_token
from registry.states import Role, Scope, TokenKind, VersionState
from releases.services.aliases import set_alias
from tests.api.registry.conftest import client_with
from tests.factories.registry import make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store", "sent")]
NAMES = {"tenant": "acme", "adapter": "support-tone", "version": "v1", "alias": "support", "path": "a.json"}
BODY = {
    "name": "x", "email": "x@example.com", "role": "viewer", "kind": "application", "scopes": ["infer"],
    "base_model": "b", "base_revision": "r1", "files": [], "adapter": "support-tone", "version": "v1", "reason": "r",
    "digest": "0" * 64,
}  # fmt: skip


def tenant_routes(*, pages: bool = False) -> Iterator[tuple[str, str]]:
    """Method and route of whatever is about one tenant: of the API, or of the pages for people."""

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, type]]:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route, getattr(pattern.callback, "view_class", object)

    for route, view in walk(get_resolver().url_patterns, "/"):
        if "<str:tenant>" in route and route.startswith("/ui/") is pages:
            yield from ((method, route) for method in ("get", "post", "put", "delete") if hasattr(view, method))


def address(route: str, tenant: str) -> str:
    return re.sub(r"<[a-z]+:([a-z_]+)>", lambda found: {**NAMES, "tenant": tenant}.get(found[1], "viewer"), route)


@pytest.fixture
def stranger(db: None) -> APIClient:
    """Every role and every scope, in another tenant."""
    other = make_tenant(name="globex")
    person = make_person(roles={other: list(Role)})
    token = create_tenant_token(
        actor=system_actor("test"),
        tenant=other,
        name="all",
        kind=TokenKind.PERSON,
        scopes=set(Scope) - {Scope.INFER, Scope.DEMAND, Scope.NODE, Scope.METRICS},
        person_email=person.email,
    )
    return client_with(token.text)


@pytest.fixture
def version(adapter: Any) -> Version:
    made = make_version(adapter=adapter, name="v1", state=VersionState.APPROVED)
    set_alias(actor=system_actor("test"), tenant=adapter.tenant, name="support", adapter=adapter, version=made)
    return made


@pytest.mark.parametrize(("method", "route"), list(tenant_routes()))
def test_a_stranger_can_not_tell_a_tenant_from_none(
    stranger: APIClient, version: Version, method: str, route: str
) -> None:
    call: Callable[..., Any] = getattr(stranger, method)
    answers = [
        call(address(route, tenant), BODY if method != "get" else None, format="json") for tenant in ("acme", "none")
    ]
    assert answers[0].status_code == answers[1].status_code == 404
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize(("method", "route"), sorted(tenant_routes(pages=True)))
def test_a_stranger_who_is_signed_in_can_not_tell_a_tenant_from_none(version: Version, method: str, route: str) -> None:
    browser = Client()
    person = make_person(roles={make_tenant(name="globex"): list(Role)})
    browser.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    call: Callable[..., Any] = getattr(browser, method)
    shown = []
    for tenant in ("acme", "absent-tenant"):
        answer = call(address(route, tenant), BODY if method != "get" else None)
        assert answer.status_code == 404
        # What differs from page to page: the tenant that was asked for, the request's number, and the form's secret.
        shown.append(re.sub(rf"{tenant}|[0-9a-f-]{{32,36}}|value=\"[A-Za-z0-9]{{64}}\"", "", answer.content.decode()))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("verb", ["warm", "evict"])
def test_a_stranger_can_not_tell_a_version_from_none_by_way_of_a_node(
    stranger: APIClient, version: Version, verb: str
) -> None:
    bodies = [{"tenant": tenant, "adapter": "support-tone", "version": "v1"} for tenant in ("acme", "none")]
    answers = [stranger.post(f"/api/v1/nodes/n1/{verb}", body, format="json") for body in bodies]
    assert answers[0].status_code == answers[1].status_code == 404
    assert answers[0].json() == answers[1].json()
