"""What must be known of an engine's answer: which version spoke, and how many tokens. Its bytes stay as they are."""

import json
import re
from dataclasses import dataclass

from gateway.errors import EngineUnreadable, VersionMismatch

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TAIL_BYTES = 64 * 1024
_LAST_EVENTS = 3
# A larger count isn't one, and the database would refuse it together with the records beside it.
_MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the engine counted them; None where it didn't say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def check_model(document: object, engine_name: str) -> None:
    """Raise VersionMismatch unless the document says that `engine_name` answered."""
    model = document.get("model") if isinstance(document, dict) else None
    if model != engine_name:
        message = "The engine answered with another version than the one asked for; its answer was thrown away."
        raise VersionMismatch(message)


def check_json_answer(body: bytes, engine_name: str) -> Usage:
    """Check a whole JSON answer; raises EngineUnreadable or VersionMismatch."""
    document = _parse(body)
    if document is None:
        message = "The engine's answer isn't valid JSON."
        raise EngineUnreadable(message)
    check_model(document, engine_name)
    return _usage(document) or Usage()


def first_event_is_right(seen: bytes, engine_name: str) -> bool:
    """Whether the stream so far holds its first data event, which names `engine_name`.

    False while there is none yet. An error event names no model and is let through.
    Raises EngineUnreadable or VersionMismatch.
    """
    *events, _ = _EVENT_END.split(seen)
    data = next((found for found in map(_data, events) if found is not None), None)
    if data is None:
        return False
    if data == b"[DONE]":
        return True
    document = _parse(data)
    if document is None:
        message = "The engine's stream doesn't begin with a JSON event."
        raise EngineUnreadable(message)
    if not (isinstance(document, dict) and "error" in document and "model" not in document):
        check_model(document, engine_name)
    return True


class UsageTail:
    """Keeps the end of a stream, where the usage stands if the client asked for it."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> None:
        """See the next bytes of the stream."""
        self._tail += chunk
        if len(self._tail) > 2 * _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]

    def usage(self) -> Usage:
        """The usage in the last events seen."""
        events = [data for data in map(_data, _EVENT_END.split(bytes(self._tail))) if data and data != b"[DONE]"]
        found = (_usage(_parse(data)) for data in reversed(events[-_LAST_EVENTS:]))
        return next((usage for usage in found if usage is not None), Usage())


def _data(event: bytes) -> bytes | None:
    lines = [line[5:].removeprefix(b" ") for line in _LINE_END.split(event) if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def _parse(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _usage(document: object) -> Usage | None:
    usage = document.get("usage") if isinstance(document, dict) else None
    if not isinstance(usage, dict):
        return None
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
