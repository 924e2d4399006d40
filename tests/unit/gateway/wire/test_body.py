import asyncio
import json
from collections.abc import Mapping

import pytest

from gateway.errors import BadJson, BodyTooLarge, BodyTooSlow, UnsupportedMedia
from gateway.wire.body import BodyLimits, check_media, parse_json_object, wait_for_body, whole_body
from gateway.wire.connection import Request
from tests.unit.gateway.connections import FakeConnection

LIMITS = BodyLimits(max_bytes=100, max_depth=5, timeout_s=0.05)
JSON = {"content-type": "application/json"}


def request(*parts: bytes, headers: Mapping[str, str] = JSON, ends: bool = True) -> Request:
    """A request whose body comes in these parts, one after the other."""
    made = Request("POST", "/v1/completions", headers, FakeConnection())
    loop = asyncio.get_running_loop()
    for part in parts:
        loop.call_soon(made.add, part)
    if ends and parts:
        loop.call_soon(made.end)
    return made


async def test_a_body_in_parts_is_read_whole() -> None:
    assert await wait_for_body(request(b'{"a"', b": 1", b"}"), LIMITS) == b'{"a": 1}'


def test_a_body_that_is_there_is_taken_within_the_same_limits() -> None:
    there = Request("POST", "/", JSON, FakeConnection())
    there.add(b'{"a": 1}')
    assert whole_body(there, LIMITS) == b'{"a": 1}'
    there.add(b" " * 101)
    with pytest.raises(BodyTooLarge):
        whole_body(there, LIMITS)


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_another_content_type_is_refused(media: str) -> None:
    with pytest.raises(UnsupportedMedia):
        check_media(Request("POST", "/", {"content-type": media}, FakeConnection()))


def test_a_charset_beside_the_content_type_is_accepted() -> None:
    check_media(Request("POST", "/", {"content-type": "Application/JSON; charset=utf-8"}, FakeConnection()))


def test_a_compressed_body_is_refused() -> None:
    with pytest.raises(UnsupportedMedia):
        check_media(Request("POST", "/", {**JSON, "content-encoding": "gzip"}, FakeConnection()))


async def test_a_declared_length_over_the_limit_is_refused_before_reading() -> None:
    with pytest.raises(BodyTooLarge):
        await wait_for_body(request(headers={**JSON, "content-length": "101"}), LIMITS)


async def test_a_body_that_grows_over_the_limit_is_refused() -> None:
    with pytest.raises(BodyTooLarge):
        await wait_for_body(request(b"x" * 60, b"x" * 60, ends=False), LIMITS)


async def test_a_body_that_does_not_end_is_refused_in_time() -> None:
    with pytest.raises(BodyTooSlow):
        await wait_for_body(request(b"{", ends=False), LIMITS)


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
        rb'{"a": "\ud800"}',
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


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_is_infinite_to_the_engine_is_refused(number: str) -> None:
    with pytest.raises(BadJson):
        parse_json_object(f'{{"temperature": {number}}}'.encode(), max_depth=5)


def test_of_a_model_named_twice_one_is_left() -> None:
    assert parse_json_object(b'{"model": "a", "model": "b", "Model": "c"}', max_depth=5) == {"model": "b", "Model": "c"}
