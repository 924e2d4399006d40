"""What must be known of an engine's answer: which version spoke, and how many tokens. Its bytes stay as they are."""

import json
import re
from dataclasses import dataclass
from typing import Final

import orjson

from gateway.errors import EngineUnreadable, VersionMismatch

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_END_BYTES: Final = 64 * 1024
_LONGEST_END: Final = 2 * _END_BYTES
_EVENT: Final = b"data:"
# The usage stands in the last event or before the last, after whatever was said.
_USAGE_BYTES: Final = 16 * 1024
_LAST_EVENTS: Final = 3
# A larger count isn't one, and the database would refuse it together with the records beside it.
_MOST_TOKENS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the engine counted them; None where it didn't say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


_NO_USAGE = Usage()


def check_model(document: object, engine_name: str) -> None:
    """Raise VersionMismatch unless the document says that `engine_name` answered.

    It says so in `model`; an event of a stream of /v1/responses in the `model` of its `response`.
    """
    found = document if isinstance(document, dict) else {}
    inner = found.get("response")
    model = inner.get("model") if isinstance(inner, dict) and "model" not in found else found.get("model")
    if model != engine_name:
        message = "The engine answered with another version than the one asked for; its answer was thrown away."
        raise VersionMismatch(message)


def check_json_answer(body: bytes, engine_name: str | None) -> Usage:
    """Check a whole JSON answer, its model too unless that is None; raises EngineUnreadable or VersionMismatch."""
    document = document_of(body)
    if document is None:
        message = "The engine's answer isn't valid JSON."
        raise EngineUnreadable(message)
    if engine_name is not None:
        check_model(document, engine_name)
    return usage_in(document) or _NO_USAGE


def first_event_is_right(seen: bytes, engine_name: str | None) -> bool:
    """Whether the stream so far holds its first data event, which names `engine_name` unless that is None.

    False while there is none yet. An error event names no model and is let through.
    Raises EngineUnreadable or VersionMismatch.
    """
    *events, _ = _EVENT_END.split(seen)
    data = next((found for found in map(_data, events) if found is not None), None)
    if data is None:
        return False
    if data == b"[DONE]":
        return True
    document = document_of(data)
    if document is None:
        message = "The engine's stream doesn't begin with a JSON event."
        raise EngineUnreadable(message)
    if engine_name is not None and not _is_error(document):
        check_model(document, engine_name)
    return True


def _is_error(document: object) -> bool:
    if not isinstance(document, dict) or "model" in document or "response" in document:
        return False
    return "error" in document or document.get("type") == "error"


class Seen:
    """What of a stream has passed: how many events, and its end."""

    __slots__ = ("_events", "_parts", "_size")

    def __init__(self) -> None:
        """Nothing has."""
        self._events = 0
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        """These bytes have passed. Nothing is done with most of them one by one: it's called for each token."""
        self._parts.append(data)
        self._size += len(data)
        if self._size > _LONGEST_END:
            end = self.end()
            self._events += end.count(_EVENT, 0, -_END_BYTES)
            self._parts, self._size = [end[-_END_BYTES:]], _END_BYTES

    def events(self) -> int:
        """How many events there were, most of which are a token; what is said may look like one, too."""
        return self._events + self.end().count(_EVENT)

    def end(self) -> bytes:
        """The end of the stream: all of it, or at least its last 64 KiB."""
        return b"".join(self._parts)


def usage_at_end(seen: bytes) -> Usage:
    """The usage in the last events of a stream, where it stands if the client asked for it."""
    at = seen.rfind(b'"usage"', max(0, len(seen) - _USAGE_BYTES))
    if at < 0:
        return _NO_USAGE
    # Where its event begins: only that much of the end has to be taken apart.
    begin = -1
    for end in _ENDS:
        begin = max(begin, seen.rfind(end, max(begin, 0), at))
    events = data_of_events(seen[begin + 1 :])
    found = (usage_in(document_of(data)) for data in reversed(events[:_LAST_EVENTS]))
    return next((usage for usage in found if usage is not None), _NO_USAGE)


def data_of_events(stream: bytes) -> list[bytes]:
    """What the events of a stream hold, one after the other; the end of a stream, `[DONE]`, is among them."""
    return [data for data in map(_data, _EVENT_END.split(stream)) if data]


def _data(event: bytes) -> bytes | None:
    lines = [line[5:].removeprefix(b" ") for line in _LINE_END.split(event) if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def document_of(data: bytes) -> object:
    """The JSON document, or None. Engines in Python may say NaN, which strictly is none, and clients take it."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def usage_in(document: object) -> Usage | None:
    """What stands in `usage`, at the top or in the `response` of an event. Embeddings have no completion."""
    if not isinstance(document, dict):
        return None
    usage = document.get("usage")
    inner = document.get("response")
    if usage is None and isinstance(inner, dict):
        usage = inner.get("usage")
    if not isinstance(usage, dict):
        return None
    asked = usage.get("prompt_tokens", usage.get("input_tokens"))
    return Usage(_count(asked), _count(usage.get("completion_tokens", usage.get("output_tokens"))))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
