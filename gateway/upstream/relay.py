"""Passing an engine's answer on: checked before its first byte leaves, untouched after."""

from collections.abc import Callable

from gateway.errors import EngineLostVersion, EngineUnreadable
from gateway.upstream.answers import Usage, UsageTail, check_json_answer, first_event_is_right
from gateway.upstream.ports import EngineAnswer
from gateway.wire.asgi import Responder

_KEPT_HEADERS = ("content-type", "cache-control", "retry-after")
_LONGEST_DOCUMENT = 64 * 1024 * 1024
_LONGEST_HEAD = 1024 * 1024
# Each look reads the head from its start: an engine that sends single bytes would hold up everybody's requests.
_MOST_LOOKS = 1000
_OK = 200
_NOT_FOUND = 404


async def relay(
    answer: EngineAnswer, *, engine_name: str, responder: Responder, on_first_byte: Callable[[], None]
) -> Usage:
    """Send the answer to the client and return the tokens that it reports.

    `on_first_byte` is called just before the first byte leaves, and may still refuse the answer by raising.
    Raises EngineLostVersion, EngineUnreadable or VersionMismatch while nothing has been sent; EngineBroken or
    EngineSilent at any time.
    """
    if answer.status == _NOT_FOUND:
        message = "The engine doesn't know the version any more."
        raise EngineLostVersion(message)
    if answer.headers.get("content-encoding", "identity") != "identity":
        message = "The engine compressed its answer, although it was asked not to."
        raise EngineUnreadable(message)
    if answer.status == _OK and answer.media == "text/event-stream":
        return await _relay_stream(answer, engine_name, responder, on_first_byte)
    body = await _read_whole(answer)
    usage = check_json_answer(body, engine_name) if answer.status == _OK else Usage()
    on_first_byte()
    await responder.whole(answer.status, _kept(answer), body)
    return usage


async def _relay_stream(
    answer: EngineAnswer, engine_name: str, responder: Responder, on_first_byte: Callable[[], None]
) -> Usage:
    tail = UsageTail()
    head = await _checked_head(answer, engine_name)
    tail.feed(head)
    on_first_byte()
    await responder.start(answer.status, _kept(answer))
    await responder.chunk(head)
    async for chunk in answer.chunks:
        tail.feed(chunk)
        await responder.chunk(chunk)
    await responder.finish()
    return tail.usage()


async def _checked_head(answer: EngineAnswer, engine_name: str) -> bytes:
    head, looks = b"", 0
    async for chunk in answer.chunks:
        head, looks = head + chunk, looks + 1
        if first_event_is_right(head, engine_name):
            return head
        if len(head) > _LONGEST_HEAD or looks >= _MOST_LOOKS:
            break
    message = "The engine's stream holds no event that could be checked."
    raise EngineUnreadable(message)


async def _read_whole(answer: EngineAnswer) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in answer.chunks:
        size += len(chunk)
        if size > _LONGEST_DOCUMENT:
            message = f"The engine's answer is over {_LONGEST_DOCUMENT} bytes."
            raise EngineUnreadable(message)
        parts.append(chunk)
    return b"".join(parts)


def _kept(answer: EngineAnswer) -> dict[str, str]:
    return {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
