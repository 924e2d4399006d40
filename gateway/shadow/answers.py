"""What an answer says, taken from OpenAI's documents and streams, so that two of them can be compared."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.upstream.answers import data_of_events, document_of, usage_in


@dataclass(frozen=True, slots=True)
class Said:
    """The texts of an answer, one for each choice and in their order, and how many tokens it took, if that was said.

    A tool call is text too: its function's name and arguments.
    """

    texts: tuple[str, ...]
    tokens: int | None = None


def said_by(body: bytes, *, is_stream: bool) -> Said | None:
    """What a whole answer of any of the generating paths says; None if it can't be read."""
    found = map(document_of, data_of_events(body) if is_stream else (body,))
    documents = [document for document in found if isinstance(document, dict)]
    if not documents:
        return None
    texts: defaultdict[int, str] = defaultdict(str)
    tokens: int | None = None
    for document in documents:
        for index, text in _texts(document):
            texts[index] += text
        usage = usage_in(document)
        if usage is not None and usage.completion_tokens is not None:
            tokens = usage.completion_tokens
    return Said(tuple(texts[index] for index in sorted(texts)), tokens)


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


def _list(document: dict[str, object], key: str) -> Iterator[dict[str, object]]:
    found = document.get(key)
    return (item for item in found if isinstance(item, dict)) if isinstance(found, list) else iter(())
