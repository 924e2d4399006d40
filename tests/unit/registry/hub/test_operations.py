import base64
import contextlib
import hashlib
import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidInput, LorekeeperError, PayloadTooLarge
from registry.hub.lines import MAX_SHORT_STRING_BYTES, MAX_SKELETON_BYTES
from registry.hub.operations import MAX_LINES, AddFile, CopyFile, DeleteFile, DeleteFolder, Header, read_operations

HEADER = {"key": "header", "value": {"summary": "Upload", "description": 'with "quotes" \\ and\nlines'}}
# Around the length at which a string is no longer held.
SIZES = st.one_of(st.integers(0, 200), st.integers(MAX_SHORT_STRING_BYTES * 3 // 4 - 9, MAX_SHORT_STRING_BYTES + 9))


class Trickle(io.RawIOBase):
    """A body that comes in pieces of any size."""

    def __init__(self, data: bytes, piece: int) -> None:
        super().__init__()
        self._stream = io.BytesIO(data)
        self._piece = piece

    def read(self, size: int = -1, /) -> bytes:
        return self._stream.read(min(size, self._piece))


def body(*operations: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(operation).encode() + b"\n" for operation in operations)


def added(path: str, content: bytes) -> dict[str, Any]:
    text = base64.b64encode(content).decode()
    return {"key": "file", "value": {"content": text, "path": path, "encoding": "base64"}}


def read(data: bytes, *, piece: int = 1 << 20, limit: int = 1 << 30, length: int | None = None) -> list[Any]:
    """Every operation; of a file its path, size, digest and bytes."""
    source: Any = Trickle(data, piece)
    found: list[Any] = []
    for operation in read_operations(source, length=len(data) if length is None else length, limit=limit):
        if isinstance(operation, AddFile):
            blob = operation.blob
            found.append((operation.path, blob.size, blob.sha256, blob.file.read()))
        else:
            found.append(operation)
    return found


@settings(deadline=None, max_examples=60)
@given(
    contents=st.lists(st.tuples(SIZES, st.integers(0, 255)), max_size=3),
    piece=st.sampled_from([1, 2, 3, 7, 4096, 1 << 20]),
    escaped=st.booleans(),
)
def test_any_files_come_out_as_they_went_in_however_the_body_is_cut(
    contents: list[tuple[int, int]], piece: int, escaped: bool
) -> None:
    files = {f"{number}.json": bytes([byte]) * size for number, (size, byte) in enumerate(contents)}
    data = body(HEADER, *(added(path, content) for path, content in files.items()))
    header, *read_files = read(data.replace(b"/", b"\\/") if escaped else data, piece=max(piece, len(data) // 4000))
    assert header.description == HEADER["value"]["description"]  # type: ignore[index]
    assert read_files == [
        (path, len(content), hashlib.sha256(content).hexdigest(), content) for path, content in files.items()
    ]


def test_the_keys_of_a_line_may_come_in_any_order() -> None:
    content = b"x" * (2 * MAX_SHORT_STRING_BYTES)
    value = {"path": "w.safetensors", "encoding": "base64", "content": base64.b64encode(content).decode()}
    assert read(body(HEADER, {"value": value, "key": "file"}))[1][3] == content


def test_every_kind_of_operation_is_read() -> None:
    digest = "0" * 64
    operations = [
        {"key": "lfsFile", "value": {"path": "a.json", "algo": "sha256", "oid": digest, "size": 3}},
        {"key": "deletedFile", "value": {"path": "b.json"}},
        {"key": "deletedFolder", "value": {"path": "c/"}},
    ]
    header = {"key": "header", "value": {"summary": "s", "parentCommit": "1" * 40}}
    assert read(body(header, *operations)) == [
        Header(title="s", description="", parent="1" * 40),
        CopyFile(path="a.json", sha256=digest),
        DeleteFile(path="b.json"),
        DeleteFolder(path="c"),
    ]


def test_a_file_of_many_megabytes_is_never_held() -> None:
    size = 24 * 1024 * 1024
    data = body(HEADER, added("w.safetensors", b"w" * size))
    tracemalloc.start()
    try:
        for operation in read_operations(io.BytesIO(data), length=len(data), limit=size):
            assert isinstance(operation, Header) or operation.blob.size == size  # type: ignore[union-attr]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * 1024 * 1024


LONG = "A" * (MAX_SHORT_STRING_BYTES + 4)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], None),
        ([added("a", b"x")], "header"),
        ([HEADER, HEADER], "header"),
        ([HEADER, {"key": "format", "value": {}}], "no operation"),
        ([HEADER, ["file"]], "A line of a commit reads"),
        ([HEADER, {"key": "file", "value": {"content": "AA==", "path": "a"}}], "encoding"),
        ([HEADER, {"key": "file", "value": {"content": "A", "path": "a", "encoding": "base64"}}], "cut off"),
        ([HEADER, {"key": "file", "value": {"content": "AA==AAAA", "path": "a", "encoding": "base64"}}], "base64"),
        ([HEADER, {"key": "file", "value": {"content": "AÄ==", "path": "a", "encoding": "base64"}}], "base64"),
        ([HEADER, {"key": "file", "value": {"content": LONG + "=A==", "path": "a", "encoding": "base64"}}], "base64"),
        ([HEADER, {"key": "file", "value": {"content": LONG + '"', "path": "a", "encoding": "base64"}}], "escapes"),
        ([HEADER, {"key": "file", "value": {"content": LONG, "path": LONG, "encoding": "base64"}}], "one long"),
        ([HEADER, {"key": "file", "value": {"content": LONG, "encoding": "base64"}}], "path"),
        ([HEADER, {"key": "deletedFile", "value": {"path": LONG}}], "Only the content"),
        ([HEADER, {"key": "file", "value": {"content": None, "path": "a", "encoding": "base64"}}], "content"),
        ([HEADER, {"key": "lfsFile", "value": {"path": "a", "oid": "x"}}], "SHA-256"),
        ([HEADER, {"key": "deletedFile", "value": {"path": "a\0"}}], "NUL"),
        ([{"key": "header", "value": {"summary": list(range(MAX_SKELETON_BYTES))}}], "too long"),
        ([HEADER, *[{"key": "deletedFile", "value": {"path": "a"}}] * MAX_LINES], "at most"),
    ],
)
def test_what_is_no_commit_is_refused_with_a_reason(lines: list[Any], words: str | None) -> None:
    if words is None:
        assert read(body(*lines)) == []
        return
    with pytest.raises(InvalidInput, match=words):
        read(body(*lines))


@pytest.mark.parametrize("ending", ["no newline", "no quote", "no brace", "a whole line less"])
def test_a_body_that_breaks_off_is_refused(ending: str) -> None:
    whole = body(HEADER, added("a.json", b"x" * 100_000), added("b.json", b"y"))
    kept = {
        "no newline": whole[:-1],
        "no quote": whole[:80_000],
        "no brace": whole[:-3],
        "a whole line less": whole[: whole.rindex(b"\n", 0, -1) + 1],
    }[ending]
    with pytest.raises(InvalidInput):
        read(kept, length=len(whole))


@pytest.mark.parametrize("size", [100, 100_000])
def test_more_bytes_than_allowed_are_refused(size: int) -> None:
    with pytest.raises(PayloadTooLarge):
        read(body(HEADER, added("a.json", b"x" * size)), limit=size - 1)


@settings(deadline=None)
@given(st.binary(max_size=300) | st.text(alphabet='{}[]":,\\/nulkeyvalu\n A=', max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(LorekeeperError):
        assert read(body(HEADER) + data, piece=7)


def test_empty_lines_count_as_lines() -> None:
    with pytest.raises(InvalidInput, match="at most"):
        read(body(HEADER) + b"\n" * (MAX_LINES + 1))
