"""On the whole stack, in both languages: a release manager signs in with a code, starts a release that somebody else
has approved, watches the canary, rolls back, and finds that in the alias's history.

Each part is a function of the person's window, so that parts of other pages can stand between them.
"""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, expect

from deploy.embedded.stack import Stack
from tests.e2e.journey import ADAPTER, ALIAS, TENANT, Journey, wait_until
from tests.e2e.web.visitor import Authenticator, Visitor, visiting
from tests.factories.adapters import adapter_files
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]
RELEASES = f"/ui/tenants/{TENANT}/releases"
ALIAS_PAGE = f"{RELEASES}/aliases/{ALIAS}"
LANGUAGES = ("en", "zh-hans")
# Long enough in its one step to be watched and undone there.
PLAN = """\
shadow: null
canary: [{percent: 50, min_minutes: 5, min_samples: 1000}]
judge: {slice_s: 2}
"""
REQUESTS = 40
_MINUTE_MS = 60_000
SAID = {
    "en": {"asked": "From {new} to v-one: v-one answers, {new} answers nothing more.", "how": "rolled back"},
    "zh-hans": {"asked": "从 {new} 回到 v-one：由 v-one 应答，{new} 不再应答任何请求。", "how": "已回滚"},
}


@pytest.fixture(scope="module")
def stage(journey: Journey, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """The alias at one version, and one to go to for each language."""
    for number, name in enumerate(("v-one", *(f"v-{language}" for language in LANGUAGES))):
        folder = tmp_path_factory.mktemp("adapter") / name
        journey.push(write_adapter(folder, adapter_files(seed=500 + number)), name)
        journey.approve(name)
    journey.point_alias("v-one")
    wait_until(lambda: journey.answering_version() == f"{TENANT}/{ADAPTER}@v-one", "it answers")
    return journey


@pytest.fixture(scope="module")
def phones() -> dict[str, Authenticator]:
    """Whose authenticator app is paired already."""
    return {}


@pytest.fixture
def rui(
    request: pytest.FixtureRequest, browser: Browser, fake_stack: Stack, phones: dict[str, Authenticator]
) -> Iterator[Visitor]:
    """The release manager, signed in with a code."""
    with visiting(browser, fake_stack, "rui@acme.example", language=request.getfixturevalue("language")) as visitor:
        if visitor.email not in phones:
            visitor.set_password()
            visitor.sign_in()
            phones[visitor.email] = visitor.turn_on_codes()
            visitor.sign_out()
        visitor.sign_in(phones[visitor.email])
        yield visitor


@pytest.fixture
def ben(browser: Browser, fake_stack: Stack, language: str, stage: Journey) -> Iterator[Visitor]:
    """A reviewer, who wasn't asked for codes."""
    with visiting(browser, fake_stack, "ben@acme.example", language=language) as visitor:
        visitor.set_password()
        visitor.sign_in()
        yield visitor


def make(visitor: Visitor, candidate: str) -> str:
    """A release of the alias to the candidate; its address."""
    page = visitor.go(ALIAS_PAGE)
    page.locator(f"main a[href^='{RELEASES}/new']").click()
    page.fill("[name=candidate]", f"{ADAPTER}@{candidate}")
    page.fill("[name=plan_text]", PLAN)
    page.locator("button[name=look]").click()
    expect(page.locator("main .timeline").first).to_contain_text("50 %")
    visitor.send()
    return page.url


def watch_canary(visitor: Visitor, stage: Journey) -> None:
    """Until the page, which nobody loads anew, shows figures of requests that really went through."""
    now = visitor.page.locator(".timeline > .now")
    expect(now).to_contain_text("50 %", timeout=_MINUTE_MS)
    for number in range(REQUESTS):
        stage.ask(user=f"user-{number}").raise_for_status()
    expect(visitor.page.locator(".figures tbody tr").first).to_be_visible(timeout=_MINUTE_MS)


def at_that_time(visitor: Visitor, moment: datetime) -> str:
    """What the alias's page says that it stood for then, in the reader's zone."""
    visitor.go(ALIAS_PAGE)
    visitor.page.fill("[name=at]", moment.strftime("%Y-%m-%dT%H:%M:%S"))
    visitor.page.locator("#history-heading ~ form button").click()
    return visitor.page.locator("#history-heading ~ table tbody").inner_text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_release_is_started_watched_and_rolled_back(
    language: str, stage: Journey, rui: Visitor, ben: Visitor
) -> None:
    candidate, said = f"v-{language}", SAID[language]
    address = make(rui, candidate)
    ben.go(address)
    ben.press("approve")
    rui.go(address)
    rui.press("start")
    watch_canary(rui, stage)
    during = datetime.now(ZoneInfo("Europe/Berlin"))

    asked = rui.press("rollback")
    assert said["asked"].format(new=candidate) in asked
    expect(rui.page.locator(".took")).to_be_visible()
    wait_until(lambda: stage.answering_version() == f"{TENANT}/{ADAPTER}@v-one", "the old version answers")

    page = rui.go(ALIAS_PAGE)
    expect(page.locator("#history-heading ~ table tbody tr").first).to_contain_text(said["how"])
    assert candidate in at_that_time(rui, during)
    assert rui.opened.violations() == []
