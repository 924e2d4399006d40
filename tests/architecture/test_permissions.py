"""Role × action: one table, written out here a second time, so that a change of it is a decision."""

import re

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from django.views import View

from registry.actors import Actor
from registry.permissions import Action, allows_in_tenant
from registry.states import Role, Scope

TENANT = 1
ALL = set(Role)

MAY = {
    Action.VIEW_TENANT: ALL,
    Action.CREATE_ADAPTER: {Role.UPLOADER},
    Action.UPLOAD_VERSION: {Role.UPLOADER},
    Action.APPROVE_VERSION: {Role.REVIEWER},
    Action.COMMENT_VERSION: {Role.UPLOADER, Role.REVIEWER, Role.RELEASE_MANAGER, Role.OPERATOR},
    Action.BREAK_GLASS: set(),
    Action.REVALIDATE_VERSION: {Role.REVIEWER},
    Action.MANAGE_EVALUATION: {Role.REVIEWER},
    Action.WITHDRAW_VERSION: {Role.REVIEWER, Role.RELEASE_MANAGER},
    Action.MOVE_ALIAS: {Role.RELEASE_MANAGER},
    Action.ROLL_BACK_ALIAS: {Role.RELEASE_MANAGER, Role.OPERATOR},
    Action.MAKE_RELEASE: {Role.RELEASE_MANAGER},
    Action.APPROVE_RELEASE: {Role.REVIEWER, Role.RELEASE_MANAGER},
    Action.START_RELEASE: {Role.RELEASE_MANAGER},
    Action.STEER_RELEASE: {Role.RELEASE_MANAGER, Role.OPERATOR},
    Action.PROMOTE_RELEASE: {Role.RELEASE_MANAGER},
    Action.MANAGE_RELEASE_TEMPLATE: {Role.RELEASE_MANAGER},
    Action.OPERATE_VERSION: {Role.OPERATOR},
    Action.READ_AUDIT: {Role.AUDITOR},
    Action.PROTECT_ALIAS: set(),
    Action.MANAGE_TENANT: set(),
}


def actor(role: Role | None, *, tenant: int = TENANT, scopes: frozenset[Scope] = frozenset(Scope)) -> Actor:
    roles = {tenant: frozenset({role})} if role else {}
    return Actor(kind="person", id="p", name="p", person_id=1, scopes=scopes, roles=roles)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("action", list(MAY))
def test_a_role_allows_exactly_its_actions(action: Action, role: Role) -> None:
    assert allows_in_tenant(actor(role), action, TENANT) == (role in MAY[action])


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("action", list(MAY))
def test_a_role_in_another_tenant_allows_nothing(action: Action, role: Role) -> None:
    assert not allows_in_tenant(actor(role, tenant=2), action, TENANT)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("action", list(MAY))
def test_a_token_without_scopes_allows_nothing(action: Action, role: Role) -> None:
    assert not allows_in_tenant(actor(role, scopes=frozenset()), action, TENANT)


@pytest.mark.parametrize("action", list(MAY))
def test_a_platform_admin_neither_uploads_nor_approves_nor_releases(action: Action) -> None:
    admin = Actor(kind="person", id="a", name="a", person_id=1, scopes=frozenset(Scope), is_platform_admin=True)
    allowed = {
        Action.VIEW_TENANT,
        Action.READ_AUDIT,
        Action.PROTECT_ALIAS,
        Action.MANAGE_TENANT,
        Action.WITHDRAW_VERSION,
        Action.REVALIDATE_VERSION,
        Action.BREAK_GLASS,
    }
    assert allows_in_tenant(admin, action, TENANT) == (action in allowed)


def routes() -> list[tuple[str, type]]:
    found: list[tuple[str, type]] = []

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> None:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, route)
            else:
                found.append((route, getattr(pattern.callback, "view_class", View)))

    walk(get_resolver().url_patterns, "")
    # Pages are for people who are signed in: test_pages.py
    return [(route, view) for route, view in found if not route.startswith("ui/") and route]


# Reachable without a token: public keys, the API's own description, health, and the store's sealed addresses.
OPEN = {
    ".well-known/lorekeeper/keys.json",
    "api/v1/keys",
    "api/v1/openapi.json",
    "api/v1/openapi.yaml",
    "healthz",
    "readyz",
    "store/<str:ticket>",
}


@pytest.mark.django_db
@pytest.mark.parametrize("route", [route for route, _view in routes()])
def test_every_route_refuses_a_caller_without_a_token(route: str, client: object) -> None:
    if route in OPEN:
        pytest.skip("open on purpose")
    url = "/" + re.sub(r"<([a-z]+):[a-z_]+>", lambda match: "1" if match[1] == "int" else "x", route)
    view = dict(routes())[route]
    for method in ("get", "post", "put", "delete"):
        if hasattr(view, method):
            answer = getattr(client, method)(url, content_type="application/json")
            assert answer.status_code in (401, 415), f"{method} {url} answered {answer.status_code}"
