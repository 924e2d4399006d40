import asyncio
import json
from collections.abc import Mapping

import pytest

from gateway.errors import BadJson, BodyTooLarge, BodyTooSlow, ClientGone, UnsupportedMedia
from gateway.wire.asgi import Message, Request
from gateway.wire.body import BodyLimits, parse_json_object, read_json_object

LIMITS = BodyLimits(max_bytes=100, max_depth=5, timeout_s=0.05)
JSON = {"content-type": "application/json"}


def request(*parts: bytes, headers: Mapping[str, str] = JSON, ends: bool = True) -> Request:
    queue = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if ends and queue:
        queue[-1]["more_body"] = False

    async def receive() -> Message:
        if not queue:
            await asyncio.Event().wait()
        return queue.pop(0)

    return Request(method="POST", path="/v1/completions", headers=headers, receive=receive)


async def test_a_body_in_parts_is_read_whole() -> None:
    assert await read_json_object(request(b'{"a"', b": 1", b"}"), LIMITS) == {"a": 1}


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
async def test_another_content_type_is_refused(media: str) -> None:
    with pytest.raises(UnsupportedMedia):
        await read_json_object(request(b"{}", headers={"content-type": media}), LIMITS)


async def test_a_charset_beside_the_content_type_is_accepted() -> None:
    assert (
        await read_json_object(request(b"{}", headers={"content-type": "Application/JSON; charset=utf-8"}), LIMITS)
        == {}
    )


async def test_a_compressed_body_is_refused() -> None:
    with pytest.raises(UnsupportedMedia):
        await read_json_object(request(b"{}", headers={**JSON, "content-encoding": "gzip"}), LIMITS)


async def test_a_declared_length_over_the_limit_is_refused_before_reading() -> None:
    with pytest.raises(BodyTooLarge):
        await read_json_object(request(headers={**JSON, "content-length": "101"}), LIMITS)


async def test_a_body_that_grows_over_the_limit_is_refused() -> None:
    with pytest.raises(BodyTooLarge):
        await read_json_object(request(b"x" * 60, b"x" * 60, ends=False), LIMITS)


async def test_a_body_that_does_not_end_is_refused_in_time() -> None:
    with pytest.raises(BodyTooSlow):
        await read_json_object(request(b"{", ends=False), LIMITS)


async def test_a_client_that_leaves_while_sending_is_gone() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        await read_json_object(Request(method="POST", path="/", headers=JSON, receive=receive), LIMITS)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"{} {}",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b"[" * 100_000,
    ],
)
def test_what_is_not_one_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(BadJson):
        parse_json_object(raw, max_depth=5)


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_nesting_is_allowed_up_to_the_limit_and_not_beyond() -> None:
    assert parse_json_object(nested(5), max_depth=5)
    with pytest.raises(BadJson, match="nested deeper than 5"):
        parse_json_object(nested(6), max_depth=5)


def test_many_flat_objects_are_not_deep() -> None:
    raw = json.dumps({"messages": [{"role": "user", "content": "hi"}] * 1000}).encode()
    assert len(parse_json_object(raw, max_depth=3)["messages"]) == 1000  # type: ignore[arg-type]  # a list, as sent


def test_lone_surrogates_survive() -> None:
    assert json.dumps(parse_json_object(rb'{"a": "\ud800"}', max_depth=5)) == r'{"a": "\ud800"}'


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_is_infinite_to_the_engine_is_refused(number: str) -> None:
    with pytest.raises(BadJson):
        parse_json_object(f'{{"temperature": {number}}}'.encode(), max_depth=5)


def test_of_a_model_named_twice_one_is_left() -> None:
    assert parse_json_object(b'{"model": "a", "model": "b", "Model": "c"}', max_depth=5) == {"model": "b", "Model": "c"}
