"""JSON from outside, read so that no input can crash, hang or fill the memory of the reader.

Nesting and the number of values are bounded *before* parsing, duplicate keys and NaN are errors, and text must be
valid Unicode. Pure: no Django, no I/O.
"""

import json
import math
from collections import Counter
from typing import Any, Final

import numpy as np

MAX_DEPTH: Final = 32
MAX_VALUES: Final = 1_500_000
_OPENING: Final = np.isin(np.arange(256), (ord("["), ord("{")))
_CLOSING: Final = np.isin(np.arange(256), (ord("]"), ord("}")))
_SEPARATORS: Final = np.isin(np.arange(256), (ord(","), ord(":")))
_QUOTE: Final = ord('"')
_WINDOW: Final = 1 << 20


class StrictJsonError(ValueError):
    """The text is not JSON that two readers would understand alike; the message says why."""


def parse(data: bytes, *, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES) -> object:
    """Return the value that `data` holds.

    Args:
        data: the whole text, UTF-8 without a byte order mark; the caller bounds its length.
        max_depth: how many objects and arrays may be open at once.
        max_values: roughly how many values the text may hold, which bounds the memory of the result.

    Raises:
        StrictJsonError: not UTF-8, not JSON, nested too deep, too many values, a key that stands twice in one
            object, NaN or Infinity, or an escape that is no Unicode character.

    """
    _check_extent(data, max_depth=max_depth, max_values=max_values)
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_sound_object)
    except StrictJsonError:
        raise
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"it is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        # An integer of more digits than Python converts.
        raise StrictJsonError("it holds a number with too many digits") from error
    _refuse_unsound(value)
    return value


def _check_extent(data: bytes, *, max_depth: int, max_values: int) -> None:
    """Count brackets and separators outside of strings, window by window, without recursion."""
    codes = np.frombuffer(data.replace(b"\\\\", b"  ").replace(b'\\"', b"  "), dtype=np.uint8)
    depth = values = quotes = 0
    for start in range(0, codes.size, _WINDOW):
        window = codes[start : start + _WINDOW]
        parity = np.cumsum(window == _QUOTE, dtype=np.int32) + quotes
        quotes = int(parity[-1])
        outside = (parity & 1) == 0
        opening = _OPENING[window] & outside
        steps = np.cumsum(opening.astype(np.int32) - (_CLOSING[window] & outside)) + depth
        values += int(opening.sum()) + int((_SEPARATORS[window] & outside).sum())
        if int(steps.max()) > max_depth:
            raise StrictJsonError(f"it is nested more than {max_depth} levels deep")
        if values > max_values:
            raise StrictJsonError(f"it holds more than {max_values:,} values")
        depth = int(steps[-1])


def _sound_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse what is wrong with one object while its keys can still be named."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise StrictJsonError(f"it has the duplicate key {twice[:100]!a}: readers differ in which value they take")
    for key, value in pairs:
        if isinstance(value, float) and not math.isfinite(value):
            raise StrictJsonError(f"{key[:100]!a} is {value}, which is not a finite number")
    return found


def _refuse_unsound(value: object) -> None:
    """Refuse text that is not Unicode and numbers in lists that are not finite."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str) and not item.isascii() and any("\ud800" <= char <= "\udfff" for char in item):
            raise StrictJsonError("it holds an escape that is no Unicode character (half of a surrogate pair)")
        elif isinstance(item, float) and not math.isfinite(item):
            raise StrictJsonError(f"it holds {item}, which is not a finite number")
