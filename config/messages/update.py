"""``python -m config.messages.update``: write what is new into the .po files, untranslated, and drop what is gone."""

from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from config.messages.extract import APPS, ROOT, marked_in

LOCALE: Final = "zh_Hans"


def catalogue_of(app: str) -> Path:
    return ROOT / app / "locale" / LOCALE / "LC_MESSAGES" / "django.po"


def template_of(app: str) -> Catalog:
    """What the app marks, untranslated."""
    catalogue = Catalog()
    for marked in marked_in(app):
        text = (marked.text, marked.plural) if marked.plural else marked.text
        catalogue.add(text, locations=[marked.place])
    return catalogue


def update(app: str) -> None:
    path = catalogue_of(app)
    known = Catalog(locale=LOCALE, project="Lorekeeper", fuzzy=False)
    if path.exists():
        with path.open("rb") as file:
            known = read_po(file, locale=LOCALE)
    # A translation that was made for a similar text would only look right.
    known.update(template_of(app), no_fuzzy_matching=True, update_creation_date=False)
    known.obsolete.clear()
    known.header_comment = "# Lorekeeper in simplified Chinese."
    known.last_translator, known.language_team, known.msgid_bugs_address = "maintainers", "maintainers", ""
    known.project, known.version, known.revision_date = "Lorekeeper", app, known.creation_date
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, known, width=120, sort_output=True, omit_header=False, include_lineno=False)


if __name__ == "__main__":
    for each in APPS:
        update(each)
