import gzip
from collections.abc import Iterator

import httpx
import pytest

from workers.node import bounded
from workers.node.bounded import EndlessAnswerError, send_bounded


class Stream(httpx.SyncByteStream):
    def __init__(self, *chunks: bytes, endless: bool = False) -> None:
        self._chunks, self._endless = chunks, endless

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        while self._endless:
            yield b"x" * 65536


def asked(stream: Stream, *, seconds: float = 5.0, encoding: str = "identity") -> httpx.Response:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    answer = httpx.Response(200, stream=stream, headers=headers)
    http = httpx.Client(transport=httpx.MockTransport(lambda _: answer))
    return send_bounded(http, http.build_request("GET", "http://engine.test/"), seconds=seconds)


def test_an_honest_answer_is_read_whole() -> None:
    assert asked(Stream(b'{"a": ', b"1}")).json() == {"a": 1}


def test_an_answer_without_an_end_is_given_up() -> None:
    with pytest.raises(EndlessAnswerError):
        asked(Stream(endless=True))


def test_an_answer_that_trickles_is_given_up() -> None:
    with pytest.raises(EndlessAnswerError):
        asked(Stream(b"a", b"b"), seconds=-1)


def test_a_small_answer_that_unpacks_to_a_large_one_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_BYTES", 1000)
    with pytest.raises(EndlessAnswerError):
        asked(Stream(gzip.compress(bytes(100_000))), encoding="gzip")
