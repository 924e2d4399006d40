"""On the whole stack, in both languages: a reviewer declines a bad adapter and approves a good one of somebody else, a
release manager signs in with a code, starts a release of it, watches the canary and rolls back, and an auditor finds
that in the log, has the chain verified, and takes it along.

Each part is a function of the person's window.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, expect

from client.audit import verify_export
from deploy.embedded.stack import Stack
from tests.e2e.journey import ADAPTER, ALIAS, TENANT, Journey, wait_until
from tests.e2e.web.visitor import Authenticator, Visitor, signed_in, visiting
from tests.factories.adapters import adapter_files
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]
RELEASES = f"/ui/tenants/{TENANT}/releases"
ALIAS_PAGE = f"{RELEASES}/aliases/{ALIAS}"
HISTORY = "#history-heading ~ table tbody tr"
OLD = f"{TENANT}/{ADAPTER}@v-one"
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
    "en": {
        "asked": "From {new} to v-one: v-one answers, {new} answers nothing more.",
        "how": "rolled back",
        "verified": "verified",
    },
    "zh-hans": {
        "asked": "从 {new} 回到 v-one：由 v-one 应答，{new} 不再应答任何请求。",
        "how": "已回滚",
        "verified": "已验证",
    },
}


@pytest.fixture(scope="module")
def stage(journey: Journey, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """The alias at one version; a good one and a bad one for each language, which nobody has looked at."""
    waiting = [f"{kind}-{language}" for language in LANGUAGES for kind in ("v", "bad")]
    for number, name in enumerate(("v-one", *waiting)):
        folder = tmp_path_factory.mktemp("adapter") / name
        journey.push(write_adapter(folder, adapter_files(seed=500 + number)), name)
    journey.approve("v-one")
    journey.point_alias("v-one")
    wait_until(lambda: journey.answering_version() == OLD, "it answers")
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
    """A reviewer."""
    with signed_in(browser, fake_stack, "ben@acme.example", language=language) as visitor:
        yield visitor


@pytest.fixture
def ivy(browser: Browser, fake_stack: Stack, language: str, stage: Journey) -> Iterator[Visitor]:
    """An auditor."""
    with signed_in(browser, fake_stack, "ivy@acme.example", language=language) as visitor:
        yield visitor


def look_through(visitor: Visitor, language: str) -> None:
    """Decline the bad one of what waits, and approve the good one."""
    inbox = "/ui/approvals"
    visitor.go(inbox).locator(f"main a[href$='/bad-{language}']").click()
    visitor.press("decline", reason="answers in riddles")
    visitor.go(inbox).locator(f"main a[href$='/v-{language}']").click()
    visitor.press("approve")


def find_in_log(visitor: Visitor, folder: Path, why: str, verified: str) -> list[str]:
    """Find the rollback, have the chain verified, take it out and verify it once more; what axe-core finds wrong."""
    page = visitor.go(f"/ui/tenants/{TENANT}/audit?{urlencode({'action': 'tenant:alias:roll_back', 'text': why})}")
    expect(page.locator("table.audit tbody tr")).to_have_count(1)
    expect(page.locator("table.audit tbody tr")).to_contain_text("Rui")
    wrong = visitor.opened.violations()
    with page.expect_download() as download:
        visitor.go(f"/ui/tenants/{TENANT}/audit").locator("button[value=jsonl]").click()
    download.value.save_as(folder / "acme.jsonl")
    verdict = verify_export((folder / "acme.jsonl").read_text(encoding="utf-8").splitlines(), chain=TENANT)
    assert verdict.intact

    page.locator("main a[href$='/audit/chain']").click()
    page.locator("#standing form button").click()
    expect(page.locator("#standing")).not_to_have_attribute("hx-trigger", re.compile(".*"), timeout=_MINUTE_MS)
    check = page.locator("#standing p", has=page.locator(".badge.good", has_text=verified)).first
    reached = re.search(r"\d+", check.inner_text().replace(",", ""))
    assert reached is not None
    assert int(reached[0]) >= verdict.records
    return wrong + visitor.opened.violations()


def make(visitor: Visitor, candidate: str) -> str:
    """A release of the alias to the candidate; the path of its page."""
    page = visitor.go(ALIAS_PAGE)
    page.locator(f"main a[href^='{RELEASES}/new']").click()
    page.fill("[name=candidate]", f"{ADAPTER}@{candidate}")
    page.fill("[name=plan_text]", PLAN)
    page.locator("button[name=look]").click()
    expect(page.locator("main .timeline").first).to_contain_text("50 %")
    visitor.send()
    return urlsplit(page.url).path


def named(version: str) -> str:
    return f"{TENANT}/{ADAPTER}@{version}"


def answering(stage: Journey) -> set[str]:
    """The versions that answer so many people."""
    answers = [stage.ask(user=f"user-{number}").raise_for_status() for number in range(REQUESTS)]
    return {answer.headers["x-lorekeeper-version"] for answer in answers}


def watch_canary(visitor: Visitor, stage: Journey, candidate: str) -> None:
    """Until the page, which nobody loads anew, shows figures of requests that really went through."""
    now = visitor.page.locator(".timeline > .now")
    expect(now).to_contain_text("50 %", timeout=_MINUTE_MS)
    assert answering(stage) == {OLD, named(candidate)}
    expect(visitor.page.locator(".figures tbody tr").first).to_be_visible(timeout=_MINUTE_MS)


def at_that_time(visitor: Visitor, moment: datetime) -> str:
    """What the alias's page says that it stood for then, in the reader's zone."""
    visitor.go(ALIAS_PAGE)
    visitor.page.fill("[name=at]", moment.strftime("%Y-%m-%dT%H:%M:%S"))
    with visitor.page.expect_navigation():
        visitor.page.locator("#history-heading ~ form button").click()
    expect(visitor.page.locator("#history-heading ~ [role=status]")).to_contain_text("v-one")
    return visitor.page.locator("#history-heading ~ table tbody").inner_text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_version_is_approved_released_watched_rolled_back_and_found_in_the_log(
    language: str, stage: Journey, rui: Visitor, ben: Visitor, ivy: Visitor, tmp_path: Path
) -> None:
    candidate, said, why = f"v-{language}", SAID[language], f"grumpy-{language}"
    look_through(ben, language)
    assert (stage.show(candidate).state, stage.show(f"bad-{language}").state) == ("approved", "rejected")
    rui.go(ALIAS_PAGE)
    known = rui.page.locator(HISTORY).count()
    before = datetime.now(ZoneInfo("Europe/Berlin"))
    address = make(rui, candidate)
    ben.go(address)
    ben.press("approve")
    rui.go(address)
    rui.press("start")
    watch_canary(rui, stage, candidate)
    during = datetime.now(ZoneInfo("Europe/Berlin"))

    asked = rui.press("rollback", reason=why)
    assert said["asked"].format(new=candidate) in asked
    expect(rui.page.locator(".took")).to_be_visible()
    wait_until(lambda: answering(stage) == {OLD}, "the old version answers everybody")

    page = rui.go(ALIAS_PAGE)
    expect(page.locator(HISTORY)).to_have_count(known + 1)
    expect(page.locator(HISTORY).first).to_contain_text(said["how"])
    assert candidate not in at_that_time(rui, before)
    assert candidate in at_that_time(rui, during)
    assert rui.opened.violations() == []
    assert find_in_log(ivy, tmp_path, why, said["verified"]) == []
