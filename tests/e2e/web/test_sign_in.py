"""Signing in on the real stack, as the application's own database role: links, second factors, passkeys, dialogs."""

import json
import re
import time

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import Browser, Page, expect

from client.sdk import LorekeeperClient
from tests.e2e.journey import TENANT, Journey
from tests.e2e.web.browsing import Window, window

pytestmark = pytest.mark.e2e
PASSWORD = "correct horse battery staple"
STEP_S = 30


def password_link(journey: Journey, email: str) -> str:
    tokens = json.loads(journey.stack.facts.secrets.bootstrap.read_text())
    with LorekeeperClient(journey.stack.urls["web"], tokens["admin_token"]) as admin:
        return admin.tenants.make_password_link(email).url


def fresh_code(secret: str) -> str:
    """A code of a time step that no code was used of yet."""
    time.sleep(STEP_S - time.time() % STEP_S + 0.5)
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // STEP_S)))


def set_password(opened: Window, link: str) -> None:
    page = opened.open(link)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()


def sign_in(page: Page, email: str) -> None:
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def confirm_password(page: Page) -> None:
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def test_a_person_sets_a_password_turns_on_a_second_factor_and_needs_it_from_then_on(
    browser: Browser, journey: Journey
) -> None:
    email = "ben@acme.example"
    with window(browser, journey.stack.urls["web"]) as opened:
        set_password(opened, password_link(journey, email))
        page = opened.page
        sign_in(page, email)
        expect(page.get_by_role("heading", name="What needs you")).to_be_visible()
        opened.open("/ui/account/second-factor/totp/activate/")
        confirm_password(page)
        secret = page.locator("input[readonly], input[disabled]").first.input_value()
        page.get_by_label("Authenticator code").fill(fresh_code(secret))
        page.get_by_role("button", name=re.compile("Activate", re.IGNORECASE)).click()
        page.wait_for_load_state()
        page.locator("summary", has_text="Ben").click()
        page.get_by_role("button", name="Sign out").click()
        sign_in(page, email)
        page.get_by_label("Code").fill(fresh_code(secret))
        page.get_by_role("button", name="Sign In").click()
        expect(page.get_by_role("heading", name="What needs you")).to_be_visible()
        assert opened.complaints == []


def test_a_token_is_made_and_revoked_in_a_dialog(browser: Browser, journey: Journey) -> None:
    email = "ana@acme.example"
    with window(browser, journey.stack.urls["web"]) as opened:
        set_password(opened, password_link(journey, email))
        page = opened.page
        sign_in(page, email)
        opened.open("/ui/tokens/new")
        page.get_by_label("Name").fill("laptop")
        page.get_by_label("upload").check()
        page.get_by_role("button", name="Make the token").click()
        text = page.locator("pre code").first.inner_text()
        with LorekeeperClient(journey.stack.urls["web"], text) as made:
            assert [each.name for each in made.tenants.all()] == [TENANT]
        opened.open("/ui/tokens")
        page.get_by_role("row", name="laptop").get_by_role("link", name="Revoke").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading", name="Revoke “laptop”?")).to_be_visible()
        assert opened.violations() == []
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.get_by_role("row", name="laptop").get_by_role("link", name="Revoke").click()
        dialog.get_by_role("button", name="Revoke it").click()
        expect(page.get_by_text("“laptop” is revoked.")).to_be_visible()
        assert opened.complaints == []


def test_a_passkey_signs_in_without_a_password(browser: Browser, journey: Journey) -> None:
    email = "rui@acme.example"
    # Browsers take names for passkeys, and no addresses.
    base = journey.stack.urls["web"].replace("127.0.0.1", "localhost")
    with window(browser, base) as opened:
        set_password(opened, password_link(journey, email).replace("127.0.0.1", "localhost"))
        page = opened.page
        sign_in(page, email)
        devices = opened.context.new_cdp_session(page)
        devices.send("WebAuthn.enable")
        kind = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
        device = {**kind, "isUserVerified": True, "automaticPresenceSimulation": True}
        devices.send("WebAuthn.addVirtualAuthenticator", {"options": device})
        opened.open("/ui/account/second-factor/webauthn/add/")
        confirm_password(page)
        page.get_by_label("Passwordless").check()
        page.get_by_role("button", name="Add").click()
        page.wait_for_load_state()
        page.locator("summary", has_text="Rui").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("heading", name="What needs you")).to_be_visible()
        assert opened.complaints == []
