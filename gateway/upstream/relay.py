"""Passing an engine's answer on: checked before its first byte leaves, untouched after."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.errors import EngineUnreadable
from gateway.upstream.answers import LONGEST_END, Usage, check_json_answer, first_event_is_right, keep_end, usage_at_end
from gateway.upstream.ports import EngineAnswer, media_of
from gateway.wire.connection import Responder

_KEPT_HEADERS = (b"content-type", b"cache-control", b"retry-after")
# Begins an event; what is said may hold it too, but this is for an estimate.
_EVENT: Final = b"data:"
_LONGEST_DOCUMENT: Final = 64 * 1024 * 1024
_LONGEST_HEAD: Final = 1024 * 1024
# Each look reads the head from its start: an engine that sends single bytes would hold up everybody's requests.
_MOST_LOOKS: Final = 1000


async def relay(
    answer: EngineAnswer,
    *,
    engine_name: str | None,
    responder: Responder,
    on_first_byte: Callable[[], None],
    on_end: Callable[[int], None],
) -> Usage:
    """Send an engine's successful answer to the client and return the tokens that it reports.

    `engine_name` is the model that the answer must name; None where engines of that kind don't tell.
    `on_first_byte` is called just before the first byte leaves, and may still refuse the answer by raising. `on_end` is
    told how many events of a stream have gone on, of which most are a token, however it ended.
    Raises EngineUnreadable or VersionMismatch while nothing has been sent; EngineBroken or EngineSilent at any time.
    """
    if answer.headers.get(b"content-encoding", b"identity") != b"identity":
        message = "The engine compressed its answer, although it was asked not to."
        raise EngineUnreadable(message)
    if media_of(answer.headers) == b"text/event-stream":
        return await _relay_stream(answer, engine_name, responder, on_first_byte, on_end)
    body = await answer.whole(_LONGEST_DOCUMENT)
    usage = check_json_answer(body, engine_name)
    on_first_byte()
    await responder.whole(answer.status, _kept(answer.headers), body)
    return usage


async def _relay_stream(
    answer: EngineAnswer,
    engine_name: str | None,
    responder: Responder,
    on_first_byte: Callable[[], None],
    on_end: Callable[[int], None],
) -> Usage:
    connection = responder.connection
    write = connection.write
    seen = bytearray()
    events = 0

    def take(data: bytes) -> bool:
        nonlocal events
        events += data.count(_EVENT)
        seen.extend(data)
        if len(seen) > LONGEST_END:
            keep_end(seen)
        write(data)
        return not connection.is_slow

    head = await _checked_head(answer, engine_name)
    on_first_byte()
    await responder.start(answer.status, _kept(answer.headers), head)
    seen.extend(head)
    events = head.count(_EVENT)
    last = None
    try:
        while last is None:
            await responder.drained()
            last = await answer.forward(take)
        events += last.count(_EVENT)
    finally:
        on_end(events)
    responder.finish(last)
    seen.extend(last)
    return usage_at_end(seen)


async def _checked_head(answer: EngineAnswer, engine_name: str | None) -> bytes:
    head = b""
    for _ in range(_MOST_LOOKS):
        chunk = await answer.read()
        head += chunk
        if first_event_is_right(head, engine_name):
            return head
        if not chunk or len(head) > _LONGEST_HEAD:
            break
    message = "The engine's stream holds no event that could be checked."
    raise EngineUnreadable(message)


def _kept(headers: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    return {name: headers[name] for name in _KEPT_HEADERS if name in headers}
