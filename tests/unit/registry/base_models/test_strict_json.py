import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.base_models.strict_json import StrictJsonError, parse

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=4
    ),
    max_leaves=20,
)  # fmt: skip


@given(value=values, ascii_only=st.booleans())
def test_what_json_writes_is_read_back(value: object, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(data=st.binary(max_size=40))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(StrictJsonError):
        parse(data)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"[" * 33 + b"]" * 33, "nested"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "nested"),
        (b"[" + b"1," * 2_000_000 + b"1]", "values"),
        (b'{"a": 1, "b": 2, "a": 3}', "duplicate key 'a'"),
        (b'[{"x": {"a": 1, "a": 1}}]', "duplicate"),
        (b'{"a": NaN}', "'a' is nan"),
        (b"[-Infinity]", "-inf"),
        (b"1e999", "inf"),
        (b'"\\ud800"', "Unicode"),
        (b'{"\\udc00": 1}', "Unicode"),
        (b"\xff", "UTF-8"),
        (b"\xef\xbb\xbf{}", "JSON"),
        (b"", "JSON"),
        (b"{} {}", "JSON"),
        (b"9" * 5000, "digits"),
    ],
)
def test_what_readers_could_understand_differently_is_refused(data: bytes, word: str) -> None:
    with pytest.raises(StrictJsonError, match=word):
        parse(data)


def test_brackets_in_text_do_not_count_as_nesting() -> None:
    text = "[" * 100 + '\\"' + "{" * 100
    assert parse(json.dumps([text]).encode()) == [text]


def test_surrogate_pairs_are_one_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize("data", [b"[" * 50_000_000, b'{"a":' * 10_000_000, b'"' + b'\\"' * 20_000_000])
def test_fifty_megabytes_of_nothing_are_refused_in_seconds(data: bytes) -> None:
    started = time.monotonic()
    with pytest.raises(StrictJsonError):
        parse(data)
    assert time.monotonic() - started < 20
