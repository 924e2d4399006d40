"""Pages of releases with figures on them, in every look; the start of a release and the way back, by keyboard alone."""

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from releases.models import Alias, Release
from releases.selectors import releases_with_relations
from releases.states import ReleaseState
from tests.e2e.web.browsing import LOOKS, Look, window
from tests.e2e.web.test_every_page import session_of
from tests.factories.api_world import ApiWorld, build_world
from tests.factories.judged import note_verdict, window_of

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("sent", "signer", "store")]
RELEASES = "/ui/tenants/acme/releases"
ALIAS = f"{RELEASES}/aliases/prod"


@pytest.fixture
def world(transactional_db: None) -> ApiWorld:
    return build_world()


@pytest.fixture
def release(world: ApiWorld) -> Release:
    return note_verdict(releases_with_relations().get(), window=window_of(failed=1, slower_ms=20))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_figures_and_a_rollback_can_be_read_by_everybody(
    look: Look, language: str, browser: Browser, live_server: LiveServer, world: ApiWorld, release: Release
) -> None:
    wrong: list[str] = []
    with window(browser, live_server.url, look=look, language=language) as opened:
        opened.enter(session_of(world))
        for name, address in (("figures", f"{ALIAS}/{release.number}"), ("going-back", f"{ALIAS}/rollback")):
            opened.open(address)
            wrong += [f"{address}: {each}" for each in opened.violations()]
            wrong += [f"{address} is too wide"] * bool(opened.overflow())
            opened.shoot(f"{language}/{look}/release-{name}")
        opened.page.locator("main button.danger").last.click()
        opened.page.wait_for_url(f"**{ALIAS}")
        wrong += [f"after it: {each}" for each in opened.violations()]
        wrong += ["after it: too wide"] * bool(opened.overflow())
        opened.shoot(f"{language}/{look}/release-gone-back")
        wrong += opened.complaints
    assert wrong == []


def press_on(page: Page, name: str) -> None:
    """Reach a control by the tab key alone, and press it."""
    for _press in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"the tab key doesn't lead to {name}")


def test_a_release_is_rolled_back_in_a_dialog_by_keyboard_alone(
    browser: Browser, live_server: LiveServer, world: ApiWorld, release: Release
) -> None:
    stable = release.stable
    with window(browser, live_server.url) as opened:
        opened.enter(session_of(world))
        page = opened.open(f"{ALIAS}/{release.number}")
        page.locator("#back").focus()
        with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
            pass  # the page asks for itself again
        expect(page.locator("#back")).to_be_focused()
        page.locator("body").focus()
        press_on(page, "Roll back")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(f"From {release.candidate.name} to {stable.name}")
        assert opened.violations() == []
        press_on(page, "Roll back")
        expect(page.locator("#live")).to_contain_text("How long the rollback took")
        assert opened.complaints == []
    assert Release.objects.get().state == ReleaseState.ROLLED_BACK
    assert Alias.objects.get(name="prod").version_id == stable.pk
