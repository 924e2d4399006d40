"""Reading pages in tests: their source and their text, and how many queries they take."""

from html.parser import HTMLParser
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.models import Version

MOST_QUERIES = 12


def shown(browser: Client, address: str) -> str:
    """The source of the page, which has to be there."""
    answer = browser.get(address)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def text_of(answer: Any) -> str:
    """What is to be read on the page, white space evened out."""
    reader = _Text()
    reader.feed(answer.content.decode())
    return " ".join(" ".join(reader.found).split())


def queries(browser: Client, address: str) -> int:
    """How many queries the page takes when it is asked for again."""
    shown(browser, address)
    with CaptureQueriesContext(connection) as found:
        shown(browser, address)
    return len(found)


def page_of_version(version: Version, part: str = "adapters", rest: str = "") -> str:
    """The address of a page about the version."""
    names = (version.adapter.tenant.name, version.adapter.name, version.name)
    return "/".join(["/ui", part, *names, *([rest] if rest else [])])


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)
