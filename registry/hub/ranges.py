"""The Range header (RFC 9110). Pure: no Django, no I/O."""

import re
from dataclasses import dataclass
from typing import Final

_ONE: Final = re.compile(r"bytes=\s*(?P<first>\d{0,19})-(?P<last>\d{0,19})\s*", re.ASCII)


class RangeNotSatisfiable(ValueError):
    """The range begins behind the end."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``first`` to ``last``, both included, of ``size``."""

    first: int
    last: int
    size: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"bytes {self.first}-{self.last}/{self.size}"


def parse_range(header: str, *, size: int) -> ByteRange | None:
    """The one range that is asked for; None for the whole, as also for several ranges or other units.

    Raises:
        RangeNotSatisfiable: nothing of the file lies in the range.

    """
    asked = _ONE.fullmatch(header)
    if asked is None or not (asked["first"] or asked["last"]):
        return None
    if asked["first"]:
        first, last = int(asked["first"]), int(asked["last"] or size)
        if asked["last"] and last < first:
            return None
    else:
        first, last = max(size - int(asked["last"]), 0), size
    if first >= size:
        raise RangeNotSatisfiable(header)
    return ByteRange(first=first, last=min(last, size - 1), size=size)
