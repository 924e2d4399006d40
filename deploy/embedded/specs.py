"""What the stack is made of, as data: long-running processes and one-shot steps, each with what it needs first."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.embedded.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class FromFile:
    """A value that an earlier step writes into a JSON file: read when the process is started."""

    file: Path
    key: str

    def read(self) -> str:
        """Return the value.

        Raises:
            EmbeddedError: the file or the key isn't there.

        """
        try:
            return str(json.loads(self.file.read_text())[self.key])
        except (OSError, ValueError, KeyError) as error:
            raise EmbeddedError(f"{self.file} has no {self.key!r}: {error!r}") from error


@dataclass(frozen=True, slots=True)
class HttpHealth:
    """Healthy when a GET of this URL answers 200."""

    url: str


@dataclass(frozen=True, slots=True)
class CeleryHealth:
    """Healthy when the Celery worker of this node name answers a ping."""

    broker_url: str
    node: str


@dataclass(frozen=True, slots=True)
class AliveHealth:
    """Healthy when it has run for so long: for processes that answer nobody."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A command that runs to its end at each start of the stack; it has to be idempotent."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str | FromFile]
    needs: tuple[str, ...] = ()
    folder: Path = ROOT
    seconds: float = 180.0


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A command that runs until the stack stops, and is started again when it ends before."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str | FromFile]
    health: HttpHealth | CeleryHealth | AliveHealth
    needs: tuple[str, ...] = ()
    folder: Path = ROOT
    start_seconds: float = 60.0
    stop_seconds: float = 10.0


Spec = StepSpec | ProcessSpec


def resolve(environment: Mapping[str, str | FromFile]) -> dict[str, str]:
    """The environment with every value read from its file."""
    return {key: value if isinstance(value, str) else value.read() for key, value in environment.items()}


def levels(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Names in groups, such that each name stands in a later group than all it needs.

    Raises:
        EmbeddedError: something is needed that isn't there, or in a circle.

    """
    left = {name: set(wanted) for name, wanted in needs.items()}
    unknown = set().union(*left.values()) - set(left)
    if unknown:
        raise EmbeddedError(f"needed, but not part of the stack: {', '.join(sorted(unknown))}")
    groups: list[list[str]] = []
    while left:
        ready = [name for name, wanted in left.items() if not wanted & set(left)]
        if not ready:
            raise EmbeddedError(f"these need each other: {', '.join(sorted(left))}")
        groups.append(ready)
        for name in ready:
            del left[name]
    return groups
