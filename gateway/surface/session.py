"""Which requests belong together: by what a client says of its session or its user."""

from collections.abc import Mapping
from typing import Final

_HEADER: Final = "x-lorekeeper-session"
_FIELDS = ("prompt_cache_key", "safety_identifier", "user")
_LONGEST: Final = 512


def session_key(headers: Mapping[str, str], body: Mapping[str, object]) -> str:
    """The key that keeps a session on one side of a canary and near its cached prefix; empty if there is none.

    The header `x-lorekeeper-session` comes first, then the body's `prompt_cache_key`, `safety_identifier` and `user`;
    whatever is empty, no text or over 512 characters long is passed over.
    """
    key = headers.get(_HEADER)
    if key and len(key) <= _LONGEST:
        return key
    for name in _FIELDS:
        value = body.get(name)
        if value and isinstance(value, str) and len(value) <= _LONGEST:
            return value
    return ""
