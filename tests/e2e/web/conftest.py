"""A browser for all tests of pages in one; see ``browsing``."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.web.browsing import running

# Playwright keeps an event loop going in this thread, in which Django then refuses to ask the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with running() as started:
        yield started
