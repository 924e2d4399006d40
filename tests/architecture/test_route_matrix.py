"""Role × action × tenant: every operation that the URL configuration has, called by callers of every kind."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from django.views import View
from rest_framework.test import APIClient

from registry.actors import Actor
from registry.api.hub.base import HubView
from registry.api.rest.views import ApiView
from registry.errors import PermissionDenied
from registry.models import Tenant
from registry.permissions import ROLES_FOR, Action, allows_in_tenant, can_see_tenant, require_on_platform
from registry.services.tokens import authenticate_token
from registry.states import Role
from tests.architecture.route_matrix import HUB_NAMES, MATRIX, body_of
from tests.factories.api_world import TENANT, ApiWorld, build_world, undone

pytestmark = pytest.mark.usefixtures("sent", "signer", "store")
PREFIX = "api/v1/"
METHODS = ("get", "head", "post", "put", "patch", "delete")
# test_pages.py
PAGES = "ui/"
# Not about anybody's rights: health, public keys, and the store's sealed addresses.
OUTSIDE = {"healthz", "readyz", ".well-known/lorekeeper/keys.json", "store/<str:ticket>"}
# Below no prefix, and no address of the Hub either.
NOT_OF_THE_HUB = {"GET /metrics"}
REFUSED = {401, 403}
CHANGES = ("PUT ", "PATCH ", "DELETE ")
MACHINES = {"POST node/report": "node", "POST node/outcomes": "node", "POST demand": "gateway"}
CALLERS = [
    *(role.value for role in Role),
    "reader",
    "outsider",
    "admin",
    "application",
    "gateway",
    "node",
    "monitor",
    "anybody",
]
# So that several processes share them.
PARTS = 4


def operations() -> dict[str, type[Any]]:
    """``GET tenants/<tenant>/adapters`` and the like, with their views; ``/`` begins what is not below the prefix."""
    found: dict[str, type[Any]] = {}

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> None:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, route)
            elif route not in OUTSIDE and route and not route.startswith(PAGES):
                view = getattr(pattern.callback, "view_class", View)
                below = route.removeprefix(PREFIX)
                address = re.sub(r"<[a-z]+:", "<", below if below != route else f"/{route}")
                found.update({f"{method.upper()} {address}": view for method in METHODS if hasattr(view, method)})

    walk(get_resolver().url_patterns, "")
    return found


OPERATIONS = operations()


def test_the_table_has_every_route_and_no_other() -> None:
    assert sorted(MATRIX) == sorted(OPERATIONS)


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_a_view_says_for_each_method_which_action_it_asks_for(operation: str) -> None:
    view = OPERATIONS[operation]
    assert issubclass(view, HubView if " /" in operation and operation not in NOT_OF_THE_HUB else ApiView)
    assert view.actions[operation.partition(" ")[0].lower()] == MATRIX[operation]
    assert set(view.actions) == {method for method in METHODS if hasattr(view, method)}


@pytest.mark.django_db
@pytest.mark.parametrize("part", range(PARTS))
def test_an_operation_is_allowed_to_those_whom_its_action_is_allowed(part: int) -> None:
    world, wrong = build_world(), []
    callers = {name: Caller.of(world.tokens[name]) for name in CALLERS}
    for operation in list(OPERATIONS)[part::PARTS]:
        for name, caller in callers.items():
            with undone():
                status = call(operation, caller.token, world).status_code
            if not is_right(status, operation, caller):
                wrong.append(f"{name}: {operation} answered {status}")
    assert wrong == []


@pytest.mark.django_db
def test_every_change_of_what_has_an_etag_names_the_state_it_is_based_on() -> None:
    world, wrong = build_world(), []
    changes = [
        name
        for name in OPERATIONS
        if name.startswith(CHANGES) and " /" not in name and hasattr(OPERATIONS[name], "get")
    ]
    assert changes
    for operation in changes:
        with undone():
            if operation.startswith("DELETE "):
                call(operation.replace("DELETE", "PUT"), world.tokens["sovereign"], world)
            status = call(operation, world.tokens["sovereign"], world, {"If-Match": '"another"'}).status_code
            if status != 412:
                wrong.append(f"{operation} answered {status}")
    assert wrong == []


@pytest.mark.django_db
def test_every_post_that_comes_again_with_its_key_is_answered_as_before() -> None:
    world, wrong, done = build_world(), [], 0
    for operation in [
        name for name, view in OPERATIONS.items() if name.startswith("POST ") and issubclass(view, ApiView)
    ]:
        token = world.tokens[MACHINES.get(operation, "sovereign")]
        with undone():
            first, again = (call(operation, token, world, {"Idempotency-Key": "k"}) for _ in range(2))
            done += first.status_code < 400
            replayed = again.headers.get("Idempotent-Replayed") == "true"
            if (first.status_code, first.content) != (again.status_code, again.content) or replayed != (
                first.status_code < 400
            ):
                wrong.append(f"{operation} answered {first.status_code} and {again.status_code}")
    assert wrong == []
    assert done > 10


def call(operation: str, token: str | None, world: ApiWorld, extra: dict[str, str] | None = None) -> Any:
    method, _space, address = operation.partition(" ")
    names = {**world.path, **HUB_NAMES} if address.startswith("/") else world.path
    path = re.sub(r"<([a-z_]+)>", lambda match: names[match[1]], address)
    client: Any = APIClient(raise_request_exception=False)
    headers = {**(extra or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    sent = {} if method in {"GET", "HEAD"} else {"data": body_of(operation, world.path), "format": "json"}
    return getattr(client, method.lower())(
        path if path.startswith("/") else f"/{PREFIX}{path}", headers=headers, **sent
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a token or without."""

    token: str | None
    actor: Actor | None
    tenant_id: int

    @classmethod
    def of(cls, token: str | None) -> "Caller":
        actor = None if token is None else authenticate_token(text=token)
        return cls(token=token, actor=actor, tenant_id=Tenant.objects.get(name=TENANT).pk)


def is_right(status: int, operation: str, caller: Caller) -> bool:
    action = MATRIX[operation]
    if status >= 500:
        return False
    if caller.actor is None and OPERATIONS[operation].authentication_classes:
        return status == 401
    if caller.actor is None or action is None:
        return status not in REFUSED
    refusal = refusal_of(caller.actor, action, caller.tenant_id)
    if refusal is None:
        return status not in REFUSED
    # Clients of the Hub take a 404 for what they may not see.
    return status == refusal or (" /" in operation and status == 404)


def refusal_of(actor: Actor, action: Action, tenant_id: int) -> int | None:
    """The status with which ``actor`` is refused ``action``; None if it is allowed."""
    if action in ROLES_FOR:
        if allows_in_tenant(actor, action, tenant_id):
            return None
        return 403 if can_see_tenant(actor, tenant_id) else 404
    try:
        require_on_platform(actor, action)
    except PermissionDenied:
        return 403
    return None
