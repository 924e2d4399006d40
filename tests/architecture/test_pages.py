"""Role × page × tenant: every address below ``/ui/``, asked for by people of every role."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve
from django.views import View

from registry.actors import Actor
from registry.models import Membership, Person, Tenant
from registry.services.people.accounts import actor_of_session
from registry.services.tokens import authenticate_token
from registry.states import Role
from registry.web.page import Page
from tests.architecture.test_route_matrix import refusal_of
from tests.factories.api_world import OTHER, TENANT, ApiWorld, build_world, undone

pytestmark = pytest.mark.usefixtures("sent", "signer", "store")
PREFIX = "ui/"
# allauth's own, about nobody but the reader.
ACCOUNT = "ui/account/"
METHODS = ("get", "post")
CALLERS = [*(role.value for role in Role), "outsider", "admin", "sovereign"]
PARTS = 4
# What a page needs to be shown that the world doesn't have by that name.
NAMES: dict[str, str] = {"template": "default"}
SIGN_IN = "/ui/account/"


def pages() -> dict[str, type[Page]]:
    found: dict[str, Any] = {}

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> None:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, route)
            elif route.startswith(PREFIX) and not route.startswith(ACCOUNT):
                found[route] = getattr(pattern.callback, "view_class", View)

    walk(get_resolver().url_patterns, "")
    return found


PAGES = pages()
OPERATIONS = [(route, method) for route, view in PAGES.items() for method in METHODS if hasattr(view, method)]


@pytest.mark.parametrize("route", list(PAGES))
def test_a_page_says_for_each_method_which_action_it_asks_for(route: str) -> None:
    view = PAGES[route]
    assert issubclass(view, Page)
    if not view.is_public:
        assert set(view.actions) == {method for method in METHODS if hasattr(view, method)}


@pytest.mark.django_db
@pytest.mark.parametrize("route", [route for route, view in PAGES.items() if not view.is_public])
def test_a_page_leads_whoever_is_not_signed_in_to_the_sign_in(route: str, client: Client) -> None:
    address = re.sub(r"<[a-z]+:[a-z_]+>", "1", f"/{route}")
    for method in METHODS:
        if hasattr(PAGES[route], method):
            answer = getattr(client, method)(address)
            assert answer.status_code == 302
            assert answer["Location"].startswith("/ui/account/login")


@dataclass(frozen=True, slots=True)
class Reader:
    browser: Client
    actor: Actor

    def refusal(self, route: str, method: str, *, tenant: str = TENANT) -> int | None:
        action = PAGES[route].actions.get(method)
        return None if action is None else refusal_of(self.actor, action, Tenant.objects.get(name=tenant).pk)


def readers(world: ApiWorld) -> dict[str, Reader]:
    return {name: reader(world.tokens[name] or "") for name in CALLERS}


def reader(token: str) -> Reader:
    person = Person.objects.get(email=authenticate_token(text=token).id)
    browser = Client(raise_request_exception=False)
    browser.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    return Reader(browser, actor_of_session(person, list(Membership.objects.filter(person=person))))


def address_of(route: str, world: ApiWorld, caller: str = "sovereign") -> str:
    """The page's address; where the world has several things of one name, that of them which the page is about."""
    names = {**NAMES, **world.path}
    if route.startswith("ui/tokens/"):
        names["prefix"] = str(world.tokens[caller]).split("_")[1]
    if route.startswith("ui/settings/webhooks/"):
        names["delivery"] = names["platform_delivery"]
    return "/" + re.sub(r"<[a-z]+:([a-z_]+)>", lambda match: names[match[1]], route)


def ask(route: str, method: str, world: ApiWorld, caller: str, somebody: Reader) -> Any:
    """Forms are sent as they are, but for that which has no page: the one that chooses a tenant."""
    sent = {"tenant": OTHER if caller == "outsider" else TENANT} if route == "ui/tenant" else {}
    return getattr(somebody.browser, method)(address_of(route, world, caller), sent)


def is_answered(answer: Any) -> bool:
    """Shown, done, or its form shown again; not as if there were no such thing, and not led to the sign-in."""
    return answer.status_code in {200, 422} or (
        answer.status_code == 302 and not answer["Location"].startswith(SIGN_IN)
    )


@pytest.mark.django_db
@pytest.mark.parametrize("part", range(PARTS))
def test_a_page_is_open_to_those_whom_its_action_is_allowed(part: int) -> None:
    world, wrong = build_world(), []
    people = readers(world)
    for route, method in OPERATIONS[part::PARTS]:
        for name, somebody in people.items():
            if PAGES[route].is_public:
                continue
            with undone():
                answer = ask(route, method, world, name, somebody)
            expected, status = somebody.refusal(route, method), answer.status_code
            refused = status == 403 if expected == 403 else status in {403, 404}
            if not (refused if expected is not None else is_answered(answer)):
                wrong.append(f"{name}: {method} {route} answered {status}")
    assert wrong == []


@pytest.mark.django_db
def test_no_page_writes_by_get() -> None:
    world, wrong = build_world(), []
    somebody = readers(world)["sovereign"]
    for route, method in OPERATIONS:
        if method == "get":
            with undone(), CaptureQueriesContext(connection) as queries:
                assert is_answered(ask(route, method, world, "sovereign", somebody)), route
            wrong += [f"{route}: {each['sql'][:200]}" for each in queries if writes(each["sql"])]
    assert wrong == []


def writes(sql: str) -> bool:
    return sql.startswith(("INSERT", "UPDATE", "DELETE")) and "django_session" not in sql


@pytest.mark.django_db
def test_a_page_leads_nobody_to_where_they_may_not_go() -> None:
    """Every link and form of every page, for every role: what it leads to is open to that role."""
    world, wrong = build_world(), []
    people = readers(world)
    for route, method in OPERATIONS:
        if method != "get" or PAGES[route].is_public:
            continue
        for name, somebody in people.items():
            if somebody.refusal(route, "get") is not None:
                continue
            with undone():
                page = ask(route, method, world, name, somebody).content.decode()
            wrong += [f"{name}: {route} leads to {way}" for way in ways_of(page) if not is_open(way, somebody)]
    assert wrong == []


def is_open(way: tuple[str, str], somebody: Reader) -> bool:
    method, address = way
    try:
        found = resolve(address.partition("?")[0].partition("#")[0])
    except Resolver404:
        return not address.startswith("/ui")
    if found.route not in PAGES or PAGES[found.route].is_public:
        return True
    return somebody.refusal(found.route, method, tenant=found.kwargs.get("tenant", TENANT)) is None


def ways_of(page: str) -> Iterator[tuple[str, str]]:
    parser = Ways()
    parser.feed(page)
    yield from parser.found


class Ways(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag == "a" and known.get("href", "").startswith("/"):
            self.found.add(("get", known["href"]))
        if tag == "form" and known.get("action", "").startswith("/"):
            self.found.add((known.get("method", "get").lower(), known["action"]))
        if known.get("hx-get", "").startswith("/"):
            self.found.add(("get", known["hx-get"]))
        if known.get("hx-post", "").startswith("/"):
            self.found.add(("post", known["hx-post"]))
