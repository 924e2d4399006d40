"""Style sheets and scripts at addresses that change with what they hold."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage

_DIGITS: Final = 12


class VersionedFilesStorage(StaticFilesStorage):
    """Adds a digest of the file to its address, so that browsers may keep it and still never have an old one."""

    def url(self, name: str | None) -> str:
        plain: str = super().url(name)
        version = _version_of(name or "")
        return f"{plain}?v={version}" if version else plain


@cache
def _version_of(name: str) -> str:
    found = finders.find(name)
    if not found:
        return ""
    return hashlib.sha256(Path(str(found)).read_bytes()).hexdigest()[:_DIGITS]
