"""Every address of the hub-compatible API asks for the right that it says, of callers of every kind."""

import re
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver
from rest_framework.test import APIClient

from registry.api.hub.base import HubView
from registry.models import Adapter, AuditRecord
from registry.permissions import ROLES_FOR, Action
from registry.services.audit.denials import tell_notices
from registry.services.tokens import create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.api.registry.conftest import Caller, client_with
from tests.api.registry.hub.conftest import SYSTEM, HubClient
from tests.factories.hub import added

METHODS = ("get", "head", "post", "put", "patch", "delete")
WORLD = {"tenant": "acme", "repo": "support-tone", "revision": "main", "path": "README.md"}
BODIES = {"api/repos/create": {"name": "support-tone", "organization": "acme"}}
BODIES["api/repos/delete"] = BODIES["api/repos/create"]


def views() -> dict[str, type[HubView]]:
    found = {}
    for pattern in get_resolver("registry.urls").url_patterns:
        view = getattr(pattern.callback, "view_class", None) if isinstance(pattern, URLPattern) else None
        if view is not None and issubclass(view, HubView):
            found[str(pattern.pattern)] = view
    return found


VIEWS = views()
OPERATIONS = [(method, route) for route, view in VIEWS.items() for method in METHODS if hasattr(view, method)]


def call(client: Any, method: str, route: str) -> int:
    path = re.sub(r"<[a-z]+:([a-z_]+)>", lambda match: WORLD[match[1]], route)
    body = {} if method in {"get", "head"} else {"data": BODIES.get(route, {}), "format": "json"}
    answer = getattr(client, method)(f"/{path}", **body)
    if answer.streaming:
        list(answer)
    return int(answer.status_code)


def test_there_are_addresses_to_look_at() -> None:
    assert len(OPERATIONS) > 15


@pytest.mark.parametrize(("method", "route"), OPERATIONS)
def test_a_view_says_for_each_method_which_action_it_asks_for(method: str, route: str) -> None:
    assert set(VIEWS[route].actions) == {name for name in METHODS if hasattr(VIEWS[route], name)}


def test_only_those_come_in_whose_role_allows_the_action(
    hub: HubClient, adapter: Adapter, as_role: Caller, admin: APIClient
) -> None:
    hub.push({"README.md": b"x"})
    wrong = []
    for method, route in OPERATIONS:
        action = VIEWS[route].actions[method]
        for role in Role:
            allowed = action not in ROLES_FOR or role in ROLES_FOR[action]
            status = call(as_role(role), method, route)
            if (status in {401, 403}) == allowed:
                wrong.append(f"{role}: {method} {route} answered {status}")
        if call(APIClient(), method, route) != 401:
            wrong.append(f"nobody: {method} {route}")
        if action is not None and action in ROLES_FOR and action != Action.VIEW_TENANT:
            wrong += [f"admin: {method} {route}"] * (call(admin, method, route) != 403)
    assert wrong == []


def test_the_audit_log_tells_of_denied_pushes_also_where_the_body_names_the_tenant(
    reader: HubClient, adapter: Adapter
) -> None:
    assert reader.commit(added("README.md", b"x")).status_code == 403
    assert reader.create(name="other").status_code == 403
    tell_notices()
    denied = AuditRecord.objects.filter(chain="acme", action="tenant:access:deny")
    assert sorted(record.object["id"] for record in denied) == [
        "POST /api/models/acme/support-tone/commit/main",
        "POST /api/repos/create",
    ]
    assert {record.how for record in denied} == {"hub"}


@pytest.mark.parametrize("kind", [TokenKind.APPLICATION, TokenKind.NODE, TokenKind.GATEWAY])
def test_tokens_of_services_neither_read_nor_push(hub: HubClient, adapter: Adapter, kind: TokenKind) -> None:
    scope = {TokenKind.APPLICATION: Scope.INFER, TokenKind.NODE: Scope.NODE, TokenKind.GATEWAY: Scope.DEMAND}[kind]
    if kind is TokenKind.APPLICATION:
        made = create_tenant_token(actor=SYSTEM, tenant=adapter.tenant, name="t", kind=kind, scopes=[scope])
    else:
        made = create_platform_token(actor=SYSTEM, name="t", kind=kind, scopes=[scope])
    service = HubClient(client_with(made.text))
    hub.push({"README.md": b"x"})
    for answer in (service.info(), service.commit(added("README.md", b"y")), service.tag("v1"), service.create()):
        assert answer.status_code in {403, 404}
