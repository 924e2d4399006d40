import io
import random
from collections.abc import Iterator
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.api.parsers import Push
from registry.errors import InvalidInput

BOUNDARY = "b0undary"
MIB = 1024 * 1024


class Counting(io.RawIOBase):
    """A body that says how much of it was read."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = io.BytesIO(body)
        self.given = 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._body.read(size)
        self.given += len(chunk)
        return chunk


def body_of(*parts: tuple[str, str | None, bytes]) -> bytes:
    """Parts are (name, file name, content)."""
    lines = []
    for name, file_name, content in parts:
        file = "" if file_name is None else f'; filename="{file_name}"'
        lines += [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode(),
            content,
            b"\r\n",
        ]
    return b"".join([*lines, f"--{BOUNDARY}--\r\n".encode()])


def push(*parts: tuple[str, str | None, bytes]) -> Push:
    return Push(io.BytesIO(body_of(("manifest", None, b"{}"), *parts)), boundary=BOUNDARY.encode())


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 400))
def test_files_come_as_they_were_sent_however_they_are_read(contents: list[bytes], size: int) -> None:
    sent = push(*[(f"{number}.json", "f", content) for number, content in enumerate(contents)])
    assert [b"".join(chunks(stream, size)) for _path, stream in sent.files()] == contents


def chunks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    while chunk := stream.read(size):
        yield chunk


def test_a_file_that_nobody_reads_is_passed_over() -> None:
    sent = push(("a.json", "f", b"x" * MIB), ("b.json", "f", b"b"))
    streams = {path: stream.read(1) for path, stream in sent.files() if path == "b.json"}
    assert streams == {"b.json": b"b"}


def test_no_more_is_taken_in_than_was_asked_for() -> None:
    content = random.Random(1).randbytes(8 * MIB)
    source = Counting(body_of(("manifest", None, b'{"a": 1}'), ("a.safetensors", "f", content)))
    sent = Push(cast("IO[bytes]", source), boundary=BOUNDARY.encode())
    assert sent.manifest == {"a": 1}
    for _path, stream in sent.files():
        taken = stream.read(MIB)
        assert source.given < 2 * MIB
        assert taken + stream.read() == content


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nothing of the kind",
        f"--{BOUNDARY}--\r\n".encode(),
        body_of(("a.json", "f", b"{}"), ("manifest", None, b"{}")),
        body_of(("manifest", "manifest.json", b"{}")),
    ],
)
def test_a_body_that_does_not_begin_with_its_manifest_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        Push(io.BytesIO(body), boundary=BOUNDARY.encode())
    assert caught.value.field == "manifest"
