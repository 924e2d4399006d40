"""How versions and aliases are written on a command line: `tenant/adapter@version` and `tenant/alias`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from client.i18n import _

_NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_VERSION = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
# The default of an adapter is an alias, too: `acme/tone.default`.
_PAIR_FORM = re.compile(rf"({_NAME})/({_NAME}(?:\.default)?)")
_VERSION_FORM = re.compile(rf"({_NAME})/({_NAME})@({_VERSION})")


@dataclass(frozen=True, slots=True)
class PairRef:
    """A name inside a tenant: an adapter or an alias."""

    tenant: str
    name: str

    def __str__(self) -> str:
        """Return `tenant/name`."""
        return f"{self.tenant}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> PairRef:
        """Read `tenant/name`.

        Raises:
            ValueError: the text has another form; the message shows the right one.

        """
        match = _PAIR_FORM.fullmatch(text)
        if match is None:
            raise ValueError(_("{text!r} isn't of the form TENANT/NAME (a-z, 0-9, hyphen).").format(text=text))
        return cls(*match.groups())


@dataclass(frozen=True, slots=True)
class VersionRef:
    """One version of an adapter of a tenant."""

    tenant: str
    adapter: str
    version: str

    def __str__(self) -> str:
        """Return `tenant/adapter@version`."""
        return f"{self.tenant}/{self.adapter}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> VersionRef:
        """Read `tenant/adapter@version`.

        Raises:
            ValueError: the text has another form; the message shows the right one.

        """
        match = _VERSION_FORM.fullmatch(text)
        if match is None:
            raise ValueError(_("{text!r} isn't of the form TENANT/ADAPTER@VERSION.").format(text=text))
        return cls(*match.groups())
