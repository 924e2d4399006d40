"""What an answer says, taken from OpenAI's documents and streams, so that two of them can be compared."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Said:
    """The texts of an answer, one for each choice and in their order, and how many tokens it took, if that was said.

    A tool call is text too: its function's name and arguments.
    """

    texts: tuple[str, ...]
    tokens: int | None = None


def said_by(body: bytes, *, is_stream: bool) -> Said | None:
    """What a whole answer of any of the generating paths says; None if it can't be read."""
    documents = list(_events(body)) if is_stream else list(_document(body))
    if not documents:
        return None
    texts: defaultdict[int, str] = defaultdict(str)
    tokens: int | None = None
    for document in documents:
        for index, text in _texts(document):
            texts[index] += text
        found = _tokens(document)
        tokens = tokens if found is None else found
    return Said(tuple(texts[index] for index in sorted(texts)), tokens)


def _document(body: bytes) -> Iterator[dict[str, object]]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    if isinstance(value, dict):
        yield value


def _events(body: bytes) -> Iterator[dict[str, object]]:
    for event in _EVENT_END.split(body):
        for line in event.splitlines():
            data = line[5:].strip() if line.startswith(b"data:") else b""
            if data and data != _DONE:
                yield from _document(data)


def _texts(document: dict[str, object]) -> Iterator[tuple[int, str]]:
    """(index of the choice, piece of its text): of a chat, a completion, or a response, whole or streamed."""
    for choice in _list(document, "choices"):
        index = choice.get("index")
        part = choice.get("delta") or choice.get("message")
        text = "".join(_pieces(part)) if isinstance(part, dict) else choice.get("text")
        yield index if isinstance(index, int) else 0, text if isinstance(text, str) else ""
    delta = document.get("delta")
    if isinstance(delta, str):
        yield 0, delta
    for output in _list(document, "output"):
        for content in _list(output, "content"):
            text = content.get("text")
            yield 0, text if isinstance(text, str) else ""
        yield 0, _call(output)


def _pieces(message: dict[str, object]) -> Iterator[str]:
    for name in ("reasoning_content", "reasoning", "content"):
        value = message.get(name)
        if isinstance(value, str):
            yield value
    for call in _list(message, "tool_calls"):
        function = call.get("function")
        if isinstance(function, dict):
            yield _call(function)


def _call(function: dict[str, object]) -> str:
    return "".join(value for key in ("name", "arguments") if isinstance(value := function.get(key), str))


def _tokens(document: dict[str, object]) -> int | None:
    response = document.get("response")
    holder = response if isinstance(response, dict) else document
    usage = holder.get("usage")
    if not isinstance(usage, dict):
        return None
    count = usage.get("completion_tokens", usage.get("output_tokens"))
    return count if isinstance(count, int) else None


def _list(document: dict[str, object], key: str) -> Iterator[dict[str, object]]:
    found = document.get(key)
    return (item for item in found if isinstance(item, dict)) if isinstance(found, list) else iter(())
