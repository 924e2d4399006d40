"""One kind of upload: what it is, how it is made, and what a registry must say of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bench.corpus.workshop import Workshop

Verdict = Literal["accept", "warn", "reject"]
Build = Callable[[Workshop], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One upload.

    Args:
        name: what it is called, unique.
        kind: what it belongs to: sound, files, keys, values, config, base or archive.
        verdict: what the checks must say.
        reason: a regular expression that the reasons must match, any case; empty where nothing is wrong.
        acts: whether an engine that serves it as trained answers otherwise than the base.
        build: puts its files into a workshop's folder.

    """

    name: str
    kind: str
    verdict: Verdict
    reason: str
    acts: bool
    build: Build


class Kind:
    """The cases of one module: functions that put files into a workshop, named as the case."""

    def __init__(self, name: str) -> None:
        """Begin a kind of cases."""
        self.name = name
        self.cases: list[Case] = []

    def accept(self, build: Build) -> Build:
        """Register a case that is accepted without a word, and acts."""
        return self._add(build, "accept", "", acts=True)

    def warn(self, reason: str, *, acts: bool = True) -> Callable[[Build], Build]:
        """Register a case that is accepted with a warning."""
        return lambda build: self._add(build, "warn", reason, acts=acts)

    def reject(self, reason: str) -> Callable[[Build], Build]:
        """Register a case that is refused."""
        return lambda build: self._add(build, "reject", reason, acts=False)

    def _add(self, build: Build, verdict: Verdict, reason: str, *, acts: bool) -> Build:
        self.cases.append(Case(build.__name__, self.name, verdict, reason, acts, build))
        return build
