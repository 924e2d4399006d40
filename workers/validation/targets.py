"""Which modules PEFT would put an adapter on, and with which rank, by PEFT's own rules for its settings."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from workers.validation.sandbox import PatternError, fullmatches
from workers.validation.settings import Settings

ALL_LINEAR: Final = "all-linear"
MAX_KEYS: Final = 4096
MAX_KEY_LENGTH: Final = 200
_BUDGET_SECONDS: Final = 5.0
_MAX_REPEATS: Final = 3
_FIRST_INDEX: Final = re.compile(r".*?\.[^.]*\.(\d+)\.")
# Engines match these keys as well, without limits: nothing that can take more than polynomial time.
_COSTLY: Final = re.compile(r"[{}]|\)[*+?]|\(\?(?!:)|\\[1-9]|[*+?][*+]")

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PatternTable(Generic[Value]):
    """rank_pattern or alpha_pattern: the first key that matches the end of a module's name gives the value."""

    rows: tuple[tuple["re.Pattern[str]", Value], ...]

    @classmethod
    def read(cls, patterns: Mapping[str, Value]) -> "PatternTable[Value]":
        """Compile all keys.

        Raises:
            PatternError: a key is no regular expression, or one that could take long to match.

        """
        if len(patterns) > MAX_KEYS:
            raise PatternError(f"a pattern setting has {len(patterns):,} keys, the limit is {MAX_KEYS:,}")
        return cls(tuple((_suffix(key), value) for key, value in patterns.items()))

    def value(self, name: str) -> Value | None:
        return next((value for pattern, value in self.rows if pattern.match(name)), None)

    def values(self, names: Sequence[str]) -> dict[str, Value]:
        """The values of all `names` that a key matches.

        Raises:
            PatternError: it takes more than a few seconds.

        """
        deadline = time.monotonic() + _BUDGET_SECONDS
        found: dict[str, Value] = {}
        for name in names if self.rows else ():
            value = self.value(name)
            if value is not None:
                found[name] = value
            if time.monotonic() > deadline:
                raise PatternError("the pattern settings take too long to match")
        return found


def untargeted(modules: Sequence[str], settings: Settings, *, outputs: frozenset[str]) -> list[str]:
    """The modules among `modules` that PEFT would leave alone although the file has weights for them.

    Args:
        modules: full names without `base_model.model.`.
        settings: of this adapter, with targets.
        outputs: names of output and embedding layers, which `all-linear` leaves out.

    Raises:
        PatternError: a pattern is unsound or costs too much to match.

    """
    excluded = frozenset() if settings.excluded is None else _matching(modules, settings.excluded)
    if settings.targets == ALL_LINEAR:
        targeted = frozenset(modules) - outputs
    else:
        targeted = _matching(modules, settings.targets or ())
    restriction = _Layers(settings)
    return [name for name in modules if name in excluded or name not in targeted or not restriction.allows(name)]


class _Layers:
    """layers_to_transform with layers_pattern; a module named in full in target_modules is above it."""

    def __init__(self, settings: Settings) -> None:
        listed = not isinstance(settings.targets, str)
        self._layers = settings.layers if listed else None
        self._above = frozenset(settings.targets or ()) if listed else frozenset()
        self._patterns = tuple(map(_suffix, settings.layers_patterns))

    def allows(self, name: str) -> bool:
        return self._layers is None or name in self._above or self._index(name) in self._layers

    def _index(self, name: str) -> int | None:
        """The first number in `name`, behind a match of one of the patterns if there are any."""
        if not self._patterns:
            found = _FIRST_INDEX.match(name)
            return int(found[1]) if found else None
        parts = name.split(".")
        for position in range(1, len(parts) - 1):
            before = ".".join(parts[:position])
            if parts[position].isdecimal() and any(pattern.match(before) for pattern in self._patterns):
                return int(parts[position])
        return None


def _matching(names: Sequence[str], wanted: tuple[str, ...] | str) -> frozenset[str]:
    if isinstance(wanted, str):
        return fullmatches(wanted, names)
    listed = frozenset(wanted)
    return frozenset(name for name in names if not listed.isdisjoint(_endings(name)))


def _endings(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[start:]) for start in range(len(parts))]


def _suffix(key: str) -> "re.Pattern[str]":
    """`key` as PEFT compiles it: it must match at the end, from the beginning or behind a dot."""
    costly = _COSTLY.search(key) or len(re.findall(r"[*+]", key)) > _MAX_REPEATS or len(key) > MAX_KEY_LENGTH
    if costly:
        raise PatternError(f"the pattern {key[:80]!a} is too costly to match for every module")
    try:
        return re.compile(rf"(.*\.)?({key})$")
    except re.error as error:
        raise PatternError(f"the pattern {key[:80]!a} is no regular expression") from error
