"""Translations of the client: gettext, domain ``lorekeeper-client``, compiled catalogs in ``client/locale``."""

from __future__ import annotations

import gettext
from pathlib import Path

DOMAIN = "lorekeeper-client"
LOCALE_FOLDER = Path(__file__).parent / "locale"

_catalog = gettext.translation(DOMAIN, localedir=LOCALE_FOLDER, fallback=True)


def _(message: str) -> str:
    """Return `message` in the language of the environment, or as it is."""
    return _catalog.gettext(message)


def ngettext(singular: str, plural: str, count: int) -> str:
    """Return the form of the message that fits `count`."""
    return _catalog.ngettext(singular, plural, count)
