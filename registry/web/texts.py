"""Texts that people and models wrote, and figures, as pages show them: nothing in a text may steer the page. Pure."""

import unicodedata
from typing import Any, Final

CUT: Final = 600
_CUT_LINES: Final = 12
# Characters that change the direction of what follows; the rest of their kind joins letters and is left alone.
_DIRECTIONS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN: Final = frozenset({"Cc", "Cs", "Co", "Zl", "Zp"})
_KEPT: Final = frozenset("\n\t")
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024


def plain(value: object) -> str:
    """The text with control and direction characters as their numbers."""
    return "".join(char if _is_harmless(char) else f"\\u{ord(char):04x}" for char in str(value))


def begin_of(text: str) -> str:
    """The beginning of a text that is too long to be shown at once; empty if it isn't."""
    begin = "\n".join(text.splitlines()[:_CUT_LINES])[:CUT]
    return begin if len(begin) < len(text.rstrip("\n")) else ""


def size(value: int | None) -> str:
    """Bytes in the unit that fits, with one decimal."""
    if value is None:
        return "–"  # noqa: RUF001  a dash for what nobody knows
    amount, unit = float(value), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{value} B"


def figure(value: Any) -> str:  # noqa: ANN401  a number or nothing
    """Four significant digits."""
    return "–" if value is None else f"{value:.4g}"  # noqa: RUF001  a dash for what was not measured


def change(value: Any) -> str:  # noqa: ANN401  a number or nothing
    """As ``figure``, with its sign."""
    if not value:
        return "–" if value is None else "0"  # noqa: RUF001  a dash for what was not measured
    return f"{value:+.4g}"


def _is_harmless(char: str) -> bool:
    return char in _KEPT or not (char in _DIRECTIONS or unicodedata.category(char) in _HIDDEN)
