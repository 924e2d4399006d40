"""Everything that people read is there in Chinese, and nothing is translated that isn't there any more."""

import re

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from config.messages.extract import APPS
from config.messages.update import catalogue_of, template_of

_PLACE = re.compile(r"%\([a-z_]+\)[sd]|\{[a-z_]*\}")


def catalogue(app: str) -> Catalog:
    with catalogue_of(app).open("rb") as file:
        return read_po(file)


@pytest.mark.parametrize("app", APPS)
def test_the_catalogue_has_every_marked_text_and_no_other(app: str) -> None:
    """``make messages`` makes it so."""
    known = {message.id for message in catalogue(app) if message.id}
    marked = {message.id for message in template_of(app) if message.id}
    assert known == marked


@pytest.mark.parametrize("app", APPS)
def test_every_text_is_translated_and_none_by_guess(app: str) -> None:
    missing = [message.id for message in catalogue(app) if message.id and not _is_whole(message.string)]
    guessed = [message.id for message in catalogue(app) if message.id and message.fuzzy]
    assert (missing, guessed) == ([], [])


@pytest.mark.parametrize("app", APPS)
def test_a_translation_has_the_same_places_for_values(app: str) -> None:
    wrong = []
    for message in catalogue(app):
        source, target = _last(message.id), _last(message.string)
        if source and sorted(_PLACE.findall(source)) != sorted(_PLACE.findall(target)):
            wrong.append(source)
    assert wrong == []


def _last(text: object) -> str:
    """With a plural the last form has all the values."""
    return str(text[-1] if isinstance(text, tuple | list) else text or "")


def _is_whole(text: object) -> bool:
    return all(text) if isinstance(text, tuple) else bool(text)
