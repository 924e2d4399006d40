from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.unit.workers.node.kit import sha256_of
from workers.node.commands import WantedFile
from workers.node.errors import FetchError, WrongBytesError
from workers.node.fetch import ATTEMPTS, Fetcher

DATA = bytes(range(256)) * 40
FILE = WantedFile("adapter_model.safetensors", len(DATA), sha256_of(DATA), "http://store.test/x?signature=1")

Answer = Callable[[httpx.Request], httpx.Response]


class Breaking(httpx.SyncByteStream):
    """Gives some bytes, then the connection breaks."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self._data
        raise httpx.ReadError("broken")


class Server:
    def __init__(self, *answers: Answer) -> None:
        self._answers = iter(answers)
        self.ranges: list[str | None] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.ranges.append(request.headers.get("Range"))
        return next(self._answers)(request)


def fetcher(server: Server, pauses: list[float] | None = None) -> Fetcher:
    http = httpx.Client(transport=httpx.MockTransport(server), follow_redirects=False)
    return Fetcher(http, sleep=(pauses if pauses is not None else []).append)


def whole(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, stream=httpx.ByteStream(DATA))


def broken(at: int) -> Answer:
    return lambda _: httpx.Response(200, stream=Breaking(DATA[:at]))


def rest(request: httpx.Request) -> httpx.Response:
    start = int(request.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    headers = {"Content-Range": f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"}
    return httpx.Response(206, stream=httpx.ByteStream(DATA[start:]), headers=headers)


def status(code: int) -> Answer:
    return lambda _: httpx.Response(code, headers={"Location": "http://elsewhere.test/"})


def test_a_file_is_fetched_whole(tmp_path: Path) -> None:
    fetcher(Server(whole)).fetch(FILE, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA


def test_an_empty_file_is_fetched(tmp_path: Path) -> None:
    empty = WantedFile("a.json", 0, sha256_of(b""), "http://store.test/x")
    fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(b"")))).fetch(empty, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == b""


def test_a_broken_download_is_resumed_where_it_broke(tmp_path: Path) -> None:
    server, pauses = Server(broken(1000), rest), list[float]()
    fetcher(server, pauses).fetch(FILE, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.ranges == [None, "bytes=1000-"]
    assert pauses == [0.2]


def test_a_store_without_ranges_gives_the_whole_again(tmp_path: Path) -> None:
    fetcher(Server(broken(1000), whole)).fetch(FILE, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA


def test_a_store_that_resumes_elsewhere_is_asked_from_the_start(tmp_path: Path) -> None:
    wrong = httpx.Response(
        206, stream=httpx.ByteStream(DATA[5:]), headers={"Content-Range": f"bytes 5-{len(DATA) - 1}/{len(DATA)}"}
    )
    server = Server(broken(1000), lambda _: wrong, whole)
    fetcher(server).fetch(FILE, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.ranges == [None, "bytes=1000-", None]


def test_a_short_download_is_tried_again(tmp_path: Path) -> None:
    fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(DATA[:10])), rest)).fetch(
        FILE, tmp_path / "part"
    )
    assert (tmp_path / "part").read_bytes() == DATA


def test_a_busy_store_is_asked_again_with_longer_pauses(tmp_path: Path) -> None:
    pauses = list[float]()
    fetcher(Server(status(503), status(429), status(500), whole), pauses).fetch(FILE, tmp_path / "part")
    assert pauses == [0.2, 0.4, 0.8]


def test_a_store_that_stays_down_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=f"HTTP 503, after {ATTEMPTS} attempts") as caught:
        fetcher(Server(*[status(503)] * ATTEMPTS)).fetch(FILE, tmp_path / "part")
    assert caught.value.error_class == "transient"


@pytest.mark.parametrize("code", [301, 302, 307, 403, 404])
def test_a_redirect_or_refusal_is_not_followed_nor_repeated(tmp_path: Path, code: int) -> None:
    with pytest.raises(FetchError, match=f"HTTP {code}"):
        fetcher(Server(status(code))).fetch(FILE, tmp_path / "part")


def test_a_longer_file_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(WrongBytesError, match="more than the"):
        fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(DATA + b"x")))).fetch(
            FILE, tmp_path / "part"
        )
    assert (tmp_path / "part").stat().st_size <= len(DATA)


def test_other_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongBytesError, match="another digest") as caught:
        fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(b"\0" * len(DATA))))).fetch(
            FILE, tmp_path / "part"
        )
    assert caught.value.error_class == "permanent"


def test_a_store_that_is_away_is_transient(tmp_path: Path) -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(FetchError, match="does not answer: ConnectError"):
        fetcher(Server(*[away] * ATTEMPTS)).fetch(FILE, tmp_path / "part")


def test_a_store_that_trickles_is_given_up(tmp_path: Path) -> None:
    now = [0.0]

    class Trickle(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for byte in DATA:
                now[0] += 20
                yield bytes([byte])

    http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=Trickle())))
    slow = Fetcher(http, sleep=lambda _: None, clock=lambda: now[0])
    with pytest.raises(FetchError, match="too slow"):
        slow.fetch(FILE, tmp_path / "part")
    assert now[0] < 300
