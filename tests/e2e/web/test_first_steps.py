"""The first page of the documents is walked as it is written: links, buttons and fields are found by their names.

In a step of the page `code` is a text, *Name* a field that the last text is typed into, **Name** a link or button to
press, and “text” what has to be on the page then.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from deploy.embedded.stack import Stack
from tests.e2e.journey import ADAPTER, TENANT, Journey, wait_until
from tests.e2e.web.browsing import Window, window
from tests.e2e.web.visitor import password_link
from tests.factories.adapters import adapter_files
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
STEPS = Path(__file__).resolve().parents[3] / "docs" / "first-steps.md"
_MARK = re.compile(
    r"Open the link of `(?P<link>[^`]+)`|`(?P<text>[^`]+)`"
    r"|\*\*(?P<press>[^*]+)\*\*|\*(?P<field>[^*]+)\*|“(?P<see>[^”]+)”"
)


@pytest.fixture(scope="module")
def stage(journey: Journey, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """What the demo leaves behind: two approved versions, the alias back at the first, and a third that waits."""
    for number, name in enumerate(("2026-03-01.1", "2026-03-01.2", "2026-03-01.3")):
        folder = tmp_path_factory.mktemp("adapter") / name
        journey.push(write_adapter(folder, adapter_files(seed=600 + number)), name)
    for name in ("2026-03-01.1", "2026-03-01.2"):
        journey.approve(name)
        journey.point_alias(name)
    journey.roll_back()
    wait_until(lambda: journey.answering_version() == f"{TENANT}/{ADAPTER}@2026-03-01.1", "it answers")
    return journey


@pytest.fixture
def opened(browser: Browser, stage: Journey) -> Iterator[Window]:
    with window(browser, stage.stack.urls["web"]) as made:
        yield made
        assert made.complaints == []


def steps() -> list[str]:
    """The numbered ones of the page, in their order."""
    found = re.findall(r"^(\d+)\. (.+)$", STEPS.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _step in found] == list(range(1, len(found) + 1))
    return [step for _number, step in found]


def take(step: str, opened: Window, stack: Stack) -> None:
    """One step, mark by mark."""
    text = ""
    for mark in _MARK.finditer(step):
        kind, said = mark.lastgroup, mark.group(mark.lastgroup or 0)
        if kind == "link":
            opened.open(password_link(stack, said))
        elif kind == "text":
            text = said.replace("@…", "@2026-03-01.3")
        elif kind == "field":
            front(opened.page).get_by_label(said, exact=True).fill(text)
        elif kind == "press":
            press(opened.page, said)
        else:
            expect(opened.page.get_by_text(said).first).to_be_visible()


def front(page: Page) -> Locator:
    """The question that is open, or the whole page."""
    dialog = page.locator("dialog[open]")
    return dialog if dialog.count() else page.locator("body")


def press(page: Page, name: str) -> None:
    """The link, button or menu of that name; a name with … is only begun."""
    within, begun, is_whole = front(page), name.removesuffix("…"), not name.endswith("…")
    link = within.get_by_role("link", name=begun, exact=is_whole)
    button = within.get_by_role("button", name=begun, exact=is_whole)
    menu = within.locator("summary").filter(has=page.get_by_text(begun, exact=is_whole))
    link.or_(button).or_(menu).first.click()
    page.wait_for_load_state("networkidle")


def test_who_reads_the_first_page_approves_moves_and_rolls_back(opened: Window, stage: Journey) -> None:
    walked = steps()
    for step in walked[:9]:
        take(step, opened, stage.stack)
    assert stage.show("2026-03-01.3").state == "approved"
    wait_until(lambda: stage.answering_version() == f"{TENANT}/{ADAPTER}@2026-03-01.3", "the new version answers")

    for step in walked[9:]:
        take(step, opened, stage.stack)
    wait_until(lambda: stage.answering_version() == f"{TENANT}/{ADAPTER}@2026-03-01.1", "the version before answers")
    who = {record.action: record.actor["name"] for record in stage.clients["ivy"].audit.records(TENANT)}
    assert (who["adapter:version:approve"], who["tenant:alias:roll_back"]) == ("Ben", "Rui")
