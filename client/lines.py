"""Text lines from a stream of bytes, split at the line feed only.

`str.splitlines` and httpx's line iterator also split at U+2028 and friends, which JSON may carry raw inside a string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def text_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield each line without its line end; bytes that aren't UTF-8 become U+FFFD."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _text(line)
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", errors="replace")
