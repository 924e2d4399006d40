"""Passing an engine's answer on: checked before its first byte leaves, untouched after."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.errors import EngineUnreadable
from gateway.upstream.answers import Seen, Usage, check_json_answer, first_event_is_right, usage_at_end
from gateway.upstream.ports import EngineAnswer, media_of
from gateway.wire.connection import Responder

_KEPT_HEADERS = (b"content-type", b"cache-control", b"retry-after")
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
    seen: Seen,
) -> Usage:
    """Send an engine's successful answer to the client and return the tokens that it reports.

    `engine_name` is the model that the answer must name; None where engines of that kind don't tell.
    `on_first_byte` is called just before the first byte leaves, and may still refuse the answer by raising. `seen` is
    told what of a stream has gone on.
    Raises EngineUnreadable or VersionMismatch while nothing has been sent; EngineBroken or EngineSilent at any time.
    """
    if answer.headers.get(b"content-encoding", b"identity") != b"identity":
        message = "The engine compressed its answer, although it was asked not to."
        raise EngineUnreadable(message)
    if media_of(answer.headers) == b"text/event-stream":
        return await _relay_stream(answer, engine_name, responder, on_first_byte, seen)
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
    seen: Seen,
) -> Usage:
    connection = responder.connection
    write = connection.write
    see = seen.add

    def take(data: bytes) -> bool:
        see(data)
        write(data)
        return not connection.is_slow

    head = await _checked_head(answer, engine_name)
    on_first_byte()
    await responder.start(answer.status, _kept(answer.headers), head)
    see(head)
    last = None
    while last is None:
        await responder.drained()
        last = await answer.forward(take)
    see(last)
    responder.finish(last)
    return usage_at_end(seen.end())


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
