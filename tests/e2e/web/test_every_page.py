"""Every page there is, seen by somebody who may see all of it: light, dark and 360 px wide, in both languages.

axe-core finds nothing, the content policy is kept, nothing is wider than the window. ``make screenshots`` keeps what
was seen.
"""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from registry.models import Person
from registry.services.tokens import authenticate_token
from tests.architecture.test_pages import PAGES, address_of
from tests.e2e.web.browsing import LOOKS, Look, Window, window
from tests.factories.api_world import ApiWorld, build_world
from tests.factories.requests import make_request
from tests.web.conftest import PASSWORD, with_password

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("sent", "signer", "store")]
TIERS = ("gpu", "cpu", "gpu", "disk")
ACCOUNT = {
    "/ui/account/login",
    "/ui/account/second-factor/",
    "/ui/account/second-factor/totp/activate/",
    "/ui/account/second-factor/webauthn/",
    "/ui/account/second-factor/webauthn/add/",
    "/ui/account/sessions",
    "/ui/account/password/change",
    "/ui/nowhere",
}


@pytest.fixture
def world(transactional_db: None) -> ApiWorld:
    made = build_world()
    now = timezone.now()
    for number in range(40):
        # Requests of this hour and of the same one yesterday, so that there is something to draw.
        make_request(
            at=now - timedelta(minutes=number, days=number % 2), tier=TIERS[number % 4], ttft_ms=80 + 9 * number
        )
    return made


def addresses(world: ApiWorld) -> Iterator[str]:
    for route, view in PAGES.items():
        if hasattr(view, "get"):
            yield address_of(route, world)
    yield from sorted(ACCOUNT)


def session_of(world: ApiWorld) -> dict[str, str]:
    token = world.tokens["sovereign"]
    assert token is not None
    person = with_password(Person.objects.get(email=authenticate_token(text=token).id))
    client = Client()
    # As after a sign-in: pages that ask for the password again don't.
    client.post("/ui/account/login", {"login": person.email, "password": PASSWORD})
    client.post("/ui/account/reauthenticate", {"password": PASSWORD})
    return {name: morsel.value for name, morsel in client.cookies.items()}


def enter(opened: Window, cookies: dict[str, str]) -> None:
    opened.context.add_cookies(
        [{"name": name, "value": value, "url": opened.base_url} for name, value in cookies.items()]
    )


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_can_be_read_by_everybody(
    look: Look, language: str, browser: Browser, live_server: LiveServer, world: ApiWorld
) -> None:
    wrong: list[str] = []
    cookies = session_of(world)
    with window(browser, live_server.url, look=look, language=language) as opened:
        enter(opened, cookies)
        for address in addresses(world):
            opened.open(address)
            wrong += [f"{address}: {each}" for each in opened.violations()]
            if wide := opened.overflow():
                wrong.append(f"{address}: {wide} px wider than the window")
            opened.shoot(
                f"{language}/{look}/{re.sub(r'[^a-z0-9]+', '-', address.removeprefix('/ui')).strip('-') or 'home'}"
            )
        wrong += opened.complaints
    assert wrong == []


def test_every_page_can_be_read_without_scripts(browser: Browser, live_server: LiveServer, world: ApiWorld) -> None:
    wrong: list[str] = []
    cookies = session_of(world)
    with window(browser, live_server.url, scripts=False) as opened:
        enter(opened, cookies)
        for address in addresses(world):
            opened.open(address)
            headings = opened.page.locator("h1").count()
            if headings != 1:
                wrong.append(f"{address} has {headings} headings of the first rank")
    assert wrong == []
