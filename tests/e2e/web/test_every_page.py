"""Every page there is, seen by somebody who may see all of it: light, dark and 360 px wide, in both languages.

axe-core finds nothing, the content policy is kept, nothing is wider than the window. ``make screenshots`` keeps what
was seen.
"""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
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
    "/ui/account/second-factor/",
    "/ui/account/second-factor/totp/activate/",
    "/ui/account/second-factor/webauthn/",
    "/ui/account/second-factor/webauthn/add/",
    "/ui/account/sessions",
    "/ui/account/password/change",
}
NOWHERE = "/ui/nowhere"
# What is seen by those who aren't signed in: with a session it would lead away.
LOGIN = "/ui/account/login"
LEADS_ON = {
    "/ui/approvals/acme/tone/v1/next": "/ui/approvals/acme/tone/candidate",
    "/ui/approvals/acme/tone/v1/previous": "/ui/approvals",
    "/ui/audit": "/ui/",
    "/ui/fleet/quotas": "/ui/fleet/quotas/{base_model}",
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
    yield from (*sorted(ACCOUNT), NOWHERE, LOGIN)


def session_of(world: ApiWorld) -> Client:
    token = world.tokens["sovereign"]
    assert token is not None
    person = with_password(Person.objects.get(email=authenticate_token(text=token).id))
    client = Client()
    # As after a sign-in: pages that ask for the password again don't.
    client.post("/ui/account/login", {"login": person.email, "password": PASSWORD})
    client.post("/ui/account/reauthenticate", {"password": PASSWORD})
    return client


def arrive(opened: Window, address: str, world: ApiWorld) -> list[str]:
    """Open the page that the address is of; what is wrong if another one comes."""
    opened.open(address, status=404 if address == NOWHERE else 200)
    expected = LEADS_ON.get(address, address).format(**world.path)
    came = opened.page.url.removeprefix(opened.base_url)
    return [] if came == expected else [f"{address}: led to {came}"]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_can_be_read_by_everybody(
    look: Look, language: str, browser: Browser, live_server: LiveServer, world: ApiWorld
) -> None:
    wrong: list[str] = []
    with window(browser, live_server.url, look=look, language=language) as opened:
        opened.enter(session_of(world))
        for address in addresses(world):
            if address == LOGIN:
                opened.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
            wrong += arrive(opened, address, world)
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
    with window(browser, live_server.url, scripts=False) as opened:
        opened.enter(session_of(world))
        for address in addresses(world):
            if address == LOGIN:
                opened.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
            wrong += arrive(opened, address, world)
            headings = opened.page.locator("h1").count()
            if headings != 1:
                wrong.append(f"{address} has {headings} headings of the first rank")
    assert wrong == []
