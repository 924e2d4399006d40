"""A person of a running stack at a browser: gets a password, turns an authenticator app on, signs in with it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from allauth.mfa import app_settings
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from client.sdk import LorekeeperClient
from deploy.embedded.stack import Stack
from tests.e2e.web.browsing import Window, window
from tests.web.conftest import PASSWORD

LOGIN: Final = "/ui/account/login"
_TO_SEND_S: Final = 10
ACTIVATE: Final = "/ui/account/second-factor/totp/activate/"


def password_link(stack: Stack, email: str) -> str:
    """The address by which the person sets a password, as an admin hands it out."""
    tokens = json.loads(stack.facts.secrets.bootstrap.read_text())
    with LorekeeperClient(stack.urls["web"], tokens["admin_token"]) as admin:
        return urlsplit(admin.tenants.make_password_link(email).url).path


class Authenticator:
    """The app on somebody's phone. A code is good once, so the next one takes until its time has come.

    And it is good for its own half minute alone, so none is given out in the last seconds of that.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._used = 0

    def code(self) -> str:
        """The code of now, once it is another than the last one, and there is time to send it."""
        while (counter := next(yield_hotp_counters_from_time())) == self._used or _left_s() < _TO_SEND_S:
            time.sleep(0.5)
        self._used = counter
        return str(format_hotp_value(hotp_value(self._secret, counter)))


def _left_s() -> float:
    period: int = app_settings.TOTP_PERIOD
    return period - time.time() % period


class Visitor:
    """One person's window, driven by addresses and the names of fields, which are the same in every language."""

    def __init__(self, opened: Window, stack: Stack, email: str) -> None:
        self.opened = opened
        self.email = email
        self._stack = stack

    @property
    def page(self) -> Page:
        return self.opened.page

    def go(self, address: str) -> Page:
        return self.opened.open(address)

    def set_password(self) -> None:
        """By a link from an admin."""
        self.go(password_link(self._stack, self.email))
        self.page.fill("[name=password]", PASSWORD)
        self.page.fill("[name=again]", PASSWORD)
        self.send()

    def sign_in(self, phone: Authenticator | None = None) -> None:
        """With the password, and the code of an authenticator app where there is one."""
        self.go(LOGIN)
        self.page.fill("[name=login]", self.email)
        self.page.fill("[name=password]", PASSWORD)
        self.send()
        if phone is not None:
            expect(self.page).to_have_url(f"{self.opened.base_url}/ui/account/second-factor/authenticate/")
            self.page.fill("[name=code]", phone.code())
            self.send()
        expect(self.page).to_have_url(f"{self.opened.base_url}/ui/")

    def turn_on_codes(self) -> Authenticator:
        """Pair an authenticator app with the account."""
        self.go(ACTIVATE)
        if self.page.locator("main [name=password]").count():
            self.confirm_password()
        phone = Authenticator(self.page.locator("#authenticator_secret").input_value())
        self.page.fill("[name=code]", phone.code())
        self.send()
        return phone

    def confirm_password(self) -> None:
        """Where a page asks for it again."""
        self.page.fill("main [name=password]", PASSWORD)
        self.send()

    def sign_out(self) -> None:
        self.opened.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)

    def send(self) -> None:
        """The form of the page."""
        with self.page.expect_navigation():
            self.page.locator("main form button[type=submit]").first.click()

    def press(self, act: str, *, reason: str = "") -> str:
        """Open the confirmation of an act by its button and agree, with a reason if one is given; what was asked."""
        self.page.locator(f"main a[href$='/{act}'], main a[href*='/{act}?']").click()
        dialog = self.page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        asked = dialog.inner_text()
        if reason:
            dialog.locator("textarea").fill(reason)
        with self.page.expect_navigation():
            dialog.locator("button[type=submit]").click()
        return asked


@contextmanager
def visiting(
    browser: Browser, stack: Stack, email: str, *, language: str, host: str = "127.0.0.1"
) -> Iterator[Visitor]:
    """A window for the person, in which nothing may go wrong; ``host`` is the name that the machine is asked by."""
    with window(browser, stack.urls["web"].replace("127.0.0.1", host), language=language) as opened:
        yield Visitor(opened, stack, email)
        assert opened.complaints == []


@contextmanager
def signed_in(browser: Browser, stack: Stack, email: str, *, language: str) -> Iterator[Visitor]:
    """A window for the person, who has set a password, wasn't asked for codes, and has come in with it."""
    with visiting(browser, stack, email, language=language) as visitor:
        visitor.set_password()
        visitor.sign_in()
        yield visitor
