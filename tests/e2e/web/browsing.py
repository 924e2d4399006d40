"""Debian's Chromium, driven by Playwright: windows of several kinds, and what is looked at in each page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

Look = Literal["light", "dark", "narrow"]
LOOKS: tuple[Look, ...] = ("light", "dark", "narrow")
_AXE = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    # Of what is right it would gather every place, which takes longer than to look.
    "resultTypes": ["violations"],
}


def chromium() -> str:
    """The program; fails with what to do where there is none."""
    found = os.environ.get("LOREKEEPER_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.fail("no Chromium: make browser, or name one in LOREKEEPER_CHROMIUM", pytrace=False)
    return found


@contextmanager
def running() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Window:
    """A window of a browser with cookies of its own, and what went wrong in it.

    Attributes:
        page: Playwright's page.
        complaints: what scripts and the content policy complained of, and answers of 500 and above.

    """

    context: BrowserContext
    page: Page
    base_url: str
    complaints: list[str] = field(default_factory=list)

    def enter(self, client: Client) -> None:
        """Be whoever is signed in at Django's test client."""
        cookies = [{"name": each.key, "value": each.value, "url": self.base_url} for each in client.cookies.values()]
        self.context.add_cookies(cookies)  # type: ignore[arg-type]  # Playwright's own shape of a cookie

    def open(self, address: str, *, status: int = 200) -> Page:
        """Go to the address, which has to answer so in the end."""
        answer = self.page.goto(f"{self.base_url}{address}")
        assert answer is not None, address
        assert answer.status == status, f"{address} answered {answer.status}"
        return self.page

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the page as it is now."""
        found = Axe().run(self.page, options=_AXE).response["violations"]
        return [f"{each['id']}: {each['help']}: {node['html'][:200]}" for each in found for node in each["nodes"]]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        wide: int = self.page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth")
        return wide

    def shoot(self, name: str) -> None:
        """A picture of the whole page, where ``make screenshots`` wants some."""
        folder = os.environ.get("LOREKEEPER_SCREENSHOTS")
        if folder:
            path = Path(folder) / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(path), full_page=True)


@contextmanager
def window(
    browser: Browser, base_url: str, *, look: Look = "light", language: str = "en", scripts: bool = True
) -> Iterator[Window]:
    """A new window; ``narrow`` is 360 px wide and light."""
    context = browser.new_context(
        viewport={"width": 360, "height": 780} if look == "narrow" else {"width": 1280, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
        locale={"en": "en-GB", "zh-hans": "zh-CN"}[language],
        timezone_id="Europe/Berlin",
        java_script_enabled=scripts,
        reduced_motion="reduce",
    )
    context.add_cookies([{"name": "lorekeeper_language", "value": language, "url": base_url}])
    page = context.new_page()
    made = Window(context, page, base_url)
    page.on("console", lambda message: _heard(made, message))
    page.on("pageerror", lambda error: made.complaints.append(str(error)))
    page.on("response", lambda answer: _answered(made, answer))
    try:
        yield made
    finally:
        context.close()


def _heard(made: Window, message: Any) -> None:
    # What a page answers on purpose, such as 404 or 422, Chromium tells as an error, too.
    if message.type == "error" and "Failed to load resource" not in message.text:
        made.complaints.append(message.text)


def _answered(made: Window, answer: Any) -> None:
    if answer.status >= 500:
        made.complaints.append(f"{answer.status} {answer.url}")
