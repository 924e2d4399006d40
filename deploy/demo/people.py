"""Who takes part in the demo, what each may do, and their API tokens, kept between runs in one private file."""

import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

TENANT = "acme"
TENANT_TITLE = "Acme Support"
APPLICATION = "support-desk"


@dataclass(frozen=True, slots=True)
class Person:
    """A person of the demo: roles in the tenant, and the scopes of the token that acts for this person."""

    name: str
    roles: tuple[str, ...]
    scopes: tuple[str, ...]

    @property
    def email(self) -> str:
        """The address that identifies the person."""
        return f"{self.name}@acme.example"


# Ana may review as well, so that what stops her from approving her own upload is the rule and not a missing role.
ANA = Person("ana", ("uploader", "reviewer"), ("read", "upload", "approve"))
BEN = Person("ben", ("reviewer",), ("read", "approve"))
CARLA = Person("carla", ("reviewer",), ("read", "approve"))
RUI = Person("rui", ("release_manager",), ("read", "release"))
OLGA = Person("olga", ("operator",), ("read", "operate"))
DORA = Person("dora", ("auditor",), ("read", "audit"))
PEOPLE = (ANA, BEN, CARLA, RUI, OLGA, DORA)


def prefix_of(token: str) -> str:
    """Return the public part of a token `lk_<prefix>_<secret>`."""
    return token.split("_")[1] if token.count("_") > 1 else ""


class TokenFile:
    """The tokens of earlier runs by name, in a JSON file that only its owner may read."""

    def __init__(self, path: Path) -> None:
        """Read the file if it is there."""
        self._path = path
        self._tokens: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def get_or_make(self, name: str, *, known: Collection[str], make: Callable[[], str]) -> str:
        """Return the kept token if the server knows its prefix, else a new one from `make`, written down at once."""
        kept = self._tokens.get(name)
        if kept is not None and prefix_of(kept) in known:
            return kept
        self._tokens[name] = make()
        self._write()
        return self._tokens[name]

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(self._tokens, stream, indent=2)
        new.replace(self._path)
