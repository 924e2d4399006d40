import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.stores.checked_stream import CheckedStream
from registry.stores.errors import StoreDigestMismatch, StoreError, StoreSizeMismatch, StoreUnavailable

BODY = b"0123456789"
SHA = hashlib.sha256(BODY).hexdigest()


class _Trickle(io.RawIOBase):
    """Gives one byte at a time, as a slow socket may."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = io.BytesIO(body)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._body.read(min(1, size))


class _Broken(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise ConnectionResetError


@given(body=st.binary(max_size=100), step=st.integers(1, 30))
def test_what_was_announced_passes_whole_in_any_steps(body: bytes, step: int) -> None:
    stream = CheckedStream(io.BytesIO(body), size=len(body), sha256=hashlib.sha256(body).hexdigest())
    passed = b""
    while chunk := stream.read(step):
        passed += chunk
    assert passed == body
    assert stream.failure is None


@given(body=st.binary(max_size=60), size=st.integers(0, 60), digest_of=st.binary(max_size=60), step=st.integers(1, 20))
def test_a_wrong_stream_never_passes_as_a_whole_object(body: bytes, size: int, digest_of: bytes, step: int) -> None:
    stream = CheckedStream(io.BytesIO(body), size=size, sha256=hashlib.sha256(digest_of).hexdigest())
    passed = b""
    failure: StoreError | None = None
    try:
        while chunk := stream.read(step):
            passed += chunk
    except StoreError as error:
        failure = error
    right = len(body) == size and body == digest_of
    assert (failure is None) == right
    assert stream.failure is failure
    assert right or len(passed) < size or size == 0


def test_a_source_that_gives_little_at_a_time_is_read_on() -> None:
    stream = CheckedStream(_Trickle(BODY), size=10, sha256=SHA)  # type: ignore[arg-type]  # a RawIOBase reads as BinaryIO
    assert stream.read(4) == b"0123"
    assert stream.read() == b"456789"
    assert stream.read() == b""


@pytest.mark.parametrize("size", [9, 11, 0])
def test_a_wrong_length_is_refused(size: int) -> None:
    with pytest.raises(StoreSizeMismatch, match=f"^{size} bytes were announced"):
        CheckedStream(io.BytesIO(BODY), size=size, sha256=SHA).drain_to(io.BytesIO())


def test_a_wrong_digest_is_refused_before_the_last_bytes_pass() -> None:
    target = io.BytesIO()
    with pytest.raises(StoreDigestMismatch):
        CheckedStream(io.BytesIO(BODY), size=10, sha256="0" * 64).drain_to(target)
    assert len(target.getvalue()) < 10


def test_a_broken_source_is_worth_another_try() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        CheckedStream(_Broken(), size=10, sha256=SHA).read()
    assert caught.value.retryable
