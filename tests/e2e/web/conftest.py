"""A browser for all tests of pages in one; see ``browsing``."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.web.browsing import running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, running() as started:
        # Playwright keeps an event loop going in this thread, in which Django then refuses to ask the database.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield started
