"""Reading a request's JSON body within limits."""

import asyncio
import json
import math
from dataclasses import dataclass
from typing import NoReturn

from gateway.errors import BadJson, BodyTooLarge, BodyTooSlow, ClientGone, UnsupportedMedia
from gateway.wire.asgi import Request


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The most that a body may be: bytes, levels of nesting, seconds to arrive."""

    max_bytes: int
    max_depth: int
    timeout_s: float


async def read_json_object(request: Request, limits: BodyLimits) -> dict[str, object]:
    """Read and parse the body; raises UnsupportedMedia, BodyTooLarge, BodyTooSlow, BadJson or ClientGone."""
    check_media(request)
    try:
        async with asyncio.timeout(limits.timeout_s):
            raw = await _read(request, limits.max_bytes)
    except TimeoutError:
        message = f"The request body didn't arrive within {limits.timeout_s:g} seconds."
        raise BodyTooSlow(message) from None
    return parse_json_object(raw, max_depth=limits.max_depth)


def check_media(request: Request) -> None:
    """Refuse a body that isn't plain application/json."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
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
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            _refuse_size(max_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _refuse_size(max_bytes: int) -> NoReturn:
    message = f"The request body is over {max_bytes} bytes."
    raise BodyTooLarge(message)


def parse_json_object(raw: bytes, *, max_depth: int) -> dict[str, object]:
    """Parse one JSON object of at most `max_depth` levels; raises BadJson that says what is wrong."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError:
        message = "The request body isn't UTF-8."
        raise BadJson(message) from None
    except json.JSONDecodeError as error:
        message = f"The request body isn't valid JSON: {error.msg} at character {error.pos}."
        raise BadJson(message) from None
    except (ValueError, RecursionError):
        message = "The request body holds a number or a nesting beyond what is accepted."
        raise BadJson(message) from None
    if not isinstance(value, dict):
        message = "The request body must be a JSON object."
        raise BadJson(message)
    if raw.count(b"{") + raw.count(b"[") > max_depth and _depth_exceeds(value, max_depth):
        message = f"The request body is nested deeper than {max_depth} levels."
        raise BadJson(message)
    return value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        _refuse_constant(text)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is no JSON number", name, 0)


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
