"""Reading a request's JSON body within limits."""

import asyncio
from dataclasses import dataclass
from typing import Final, NoReturn

import orjson

from gateway.errors import BadJson, BodyTooLarge, BodyTooSlow, UnsupportedMedia
from gateway.wire.connection import Request

_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The most that a body may be: bytes, levels of nesting, seconds to arrive."""

    max_bytes: int
    max_depth: int
    timeout_s: float


async def wait_for_body(request: Request, limits: BodyLimits) -> bytes:
    """Wait for the rest of the body; gives all of it. Raises BodyTooLarge or BodyTooSlow."""
    try:
        async with asyncio.timeout(limits.timeout_s):
            return await _read(request, limits.max_bytes)
    except TimeoutError:
        message = f"The request body didn't arrive within {limits.timeout_s:g} seconds."
        raise BodyTooSlow(message) from None


def whole_body(request: Request, limits: BodyLimits) -> bytes:
    """The body that has arrived whole; raises BodyTooLarge."""
    raw = request.take()
    if len(raw) > limits.max_bytes:
        _refuse_size(limits.max_bytes)
    return raw


def check_media(request: Request) -> None:
    """Refuse a body that isn't plain application/json."""
    media = request.headers.get("content-type", "")
    if media != _JSON and media.partition(";")[0].strip().lower() != _JSON:
        message = "The request body must be application/json."
        raise UnsupportedMedia(message)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        message = "A compressed request body isn't accepted."
        raise UnsupportedMedia(message)


async def _read(request: Request, max_bytes: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        _refuse_size(max_bytes)
    parts: list[bytes] = []
    size = 0
    while True:
        await request.more()
        part = request.take()
        size += len(part)
        if size > max_bytes:
            _refuse_size(max_bytes)
        parts.append(part)
        if request.is_whole:
            return b"".join(parts)


def _refuse_size(max_bytes: int) -> NoReturn:
    message = f"The request body is over {max_bytes} bytes."
    raise BodyTooLarge(message)


def parse_json_object(raw: bytes, *, max_depth: int) -> dict[str, object]:
    """Parse one JSON object of at most `max_depth` levels; raises BadJson that says what is wrong.

    Strictly RFC 8259: no NaN, no half of a surrogate pair. Integers beyond 64 bits become floating point numbers.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        message = f"The request body isn't valid JSON: {error.msg}."
        raise BadJson(message) from None
    if not isinstance(value, dict):
        message = "The request body must be a JSON object."
        raise BadJson(message)
    if raw.count(b"{") + raw.count(b"[") > max_depth and _depth_exceeds(value, max_depth):
        message = f"The request body is nested deeper than {max_depth} levels."
        raise BadJson(message)
    return value


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _children(item: object) -> list[object]:
    if isinstance(item, dict):
        return list(item.values())
    if isinstance(item, list):
        return item
    return []
