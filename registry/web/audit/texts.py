"""What others wrote, so that it can't disturb the page it stands on. Pure."""

import json
import re
from typing import Any, Final

# Controls, and what turns the direction of text or is not seen at all; lines may end.
_DISTURBING: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
)
# So much of one side of a comparison is shown; the whole record is in its own place below it.
_SHOWN_LINES: Final = 400
_SHOWN_WIDTH: Final = 500
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001  a spreadsheet takes them, too


def visible(text: str) -> str:
    """The text with what can't be seen in it written out."""
    return _DISTURBING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_lines(value: Any) -> str:  # noqa: ANN401  any JSON value
    """A JSON value with one fact a line, cut where nobody would read on; empty for nothing."""
    if value is None:
        return ""
    lines = visible(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)).split("\n")
    shown = [line if len(line) <= _SHOWN_WIDTH else f"{line[:_SHOWN_WIDTH]}…" for line in lines[:_SHOWN_LINES]]
    return "\n".join(shown if len(lines) <= _SHOWN_LINES else [*shown, "…"])


def cell(value: object) -> str:
    """The text for a field of a CSV file, such that a spreadsheet never takes it for a formula."""
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
