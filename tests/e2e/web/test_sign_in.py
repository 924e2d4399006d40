"""Signing in on the real stack, as the application's own database role: links, second factors, passkeys, dialogs."""

import pytest
from playwright.sync_api import Browser, Page, expect

from client.sdk import LorekeeperClient
from tests.e2e.journey import TENANT, Journey
from tests.e2e.web.visitor import visiting

pytestmark = pytest.mark.e2e


def sign_out(page: Page, name: str) -> None:
    page.locator("summary", has_text=name).click()
    page.get_by_role("button", name="Sign out").click()


def test_a_person_sets_a_password_turns_on_a_second_factor_and_needs_it_from_then_on(
    browser: Browser, journey: Journey
) -> None:
    with visiting(browser, journey.stack, "ben@acme.example", language="en") as ben:
        ben.set_password()
        ben.sign_in()
        expect(ben.page.get_by_role("heading", name="What needs you")).to_be_visible()
        phone = ben.turn_on_codes()
        sign_out(ben.page, "Ben")
        ben.sign_in(phone)
        expect(ben.page.get_by_role("heading", name="What needs you")).to_be_visible()


def test_a_token_is_made_and_revoked_in_a_dialog(browser: Browser, journey: Journey) -> None:
    with visiting(browser, journey.stack, "ana@acme.example", language="en") as ana:
        ana.set_password()
        ana.sign_in()
        page = ana.go("/ui/tokens/new")
        page.get_by_label("Name").fill("laptop")
        page.get_by_label("upload").check()
        page.get_by_role("button", name="Make the token").click()
        text = page.locator("pre code").first.inner_text()
        with LorekeeperClient(journey.stack.urls["web"], text) as made:
            assert [each.name for each in made.tenants.all()] == [TENANT]
        ana.go("/ui/tokens")
        page.get_by_role("row", name="laptop").get_by_role("link", name="Revoke").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading", name="Revoke “laptop”?")).to_be_visible()
        assert ana.opened.violations() == []
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.get_by_role("row", name="laptop").get_by_role("link", name="Revoke").click()
        dialog.get_by_role("button", name="Revoke it").click()
        expect(page.get_by_text("“laptop” is revoked.")).to_be_visible()


def test_a_passkey_signs_in_without_a_password(browser: Browser, journey: Journey) -> None:
    # Browsers take names for passkeys, and no addresses.
    with visiting(browser, journey.stack, "rui@acme.example", language="en", host="localhost") as rui:
        rui.set_password()
        rui.sign_in()
        page = rui.page
        devices = rui.opened.context.new_cdp_session(page)
        devices.send("WebAuthn.enable")
        kind = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
        device = {**kind, "isUserVerified": True, "automaticPresenceSimulation": True}
        devices.send("WebAuthn.addVirtualAuthenticator", {"options": device})
        rui.go("/ui/account/second-factor/webauthn/add/")
        rui.confirm_password()
        page.get_by_label("Passwordless").check()
        page.get_by_role("button", name="Add").click()
        page.wait_for_load_state()
        sign_out(page, "Rui")
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("heading", name="What needs you")).to_be_visible()
