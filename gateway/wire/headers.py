"""Header lines as they go out: made once for what is said again and again, never more lines than headers."""

from collections.abc import Mapping
from functools import lru_cache

Headers = Mapping[bytes, bytes]  # names in lower case


def header_lines(headers: Headers) -> bytes:
    """The headers as lines; raises ValueError for one that would be more than a line."""
    return b"".join([_line(name, value) for name, value in headers.items()])


@lru_cache(maxsize=1024)
def _line(name: bytes, value: bytes) -> bytes:
    text = b"%b: %b" % (name, value)
    if b"\n" in text or b"\r" in text or b"\0" in text:
        message = "a header of the answer holds a character that ends it"
        raise ValueError(message)
    return text + b"\r\n"
