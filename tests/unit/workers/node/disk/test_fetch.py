from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from time import sleep

import httpx
import pytest

from tests.unit.workers.node.kit import sha256_of
from workers.node.commands import WantedFile
from workers.node.disk.fetch import ATTEMPTS, Fetcher
from workers.node.errors import FetchError, SupersededError, WrongBytesError
from workers.node.limits import Limits

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
    fetcher(Server(whole)).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA


def test_an_empty_file_is_fetched(tmp_path: Path) -> None:
    empty = WantedFile("a.json", 0, sha256_of(b""), "http://store.test/x")
    fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(b"")))).fetch([(empty, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == b""


def test_a_broken_download_is_resumed_where_it_broke(tmp_path: Path) -> None:
    server, pauses = Server(broken(1000), rest), list[float]()
    fetcher(server, pauses).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.ranges == [None, "bytes=1000-"]
    assert pauses == [0.2]


def test_a_store_without_ranges_gives_the_whole_again(tmp_path: Path) -> None:
    fetcher(Server(broken(1000), whole)).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA


def test_a_store_that_resumes_elsewhere_is_asked_from_the_start(tmp_path: Path) -> None:
    wrong = httpx.Response(
        206, stream=httpx.ByteStream(DATA[5:]), headers={"Content-Range": f"bytes 5-{len(DATA) - 1}/{len(DATA)}"}
    )
    server = Server(broken(1000), lambda _: wrong, whole)
    fetcher(server).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.ranges == [None, "bytes=1000-", None]


def test_a_short_download_is_tried_again(tmp_path: Path) -> None:
    fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(DATA[:10])), rest)).fetch(
        [(FILE, tmp_path / "part")]
    )
    assert (tmp_path / "part").read_bytes() == DATA


def test_a_busy_store_is_asked_again_with_longer_pauses(tmp_path: Path) -> None:
    pauses = list[float]()
    fetcher(Server(status(503), status(429), status(500), whole), pauses).fetch([(FILE, tmp_path / "part")])
    assert pauses == [0.2, 0.4, 0.8]


def test_a_store_that_stays_down_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=f"HTTP 503, after {ATTEMPTS} attempts") as caught:
        fetcher(Server(*[status(503)] * ATTEMPTS)).fetch([(FILE, tmp_path / "part")])
    assert caught.value.error_class == "transient"


@pytest.mark.parametrize("code", [301, 302, 307, 403, 404])
def test_a_redirect_or_refusal_is_not_followed_nor_repeated(tmp_path: Path, code: int) -> None:
    with pytest.raises(FetchError, match=f"HTTP {code}"):
        fetcher(Server(status(code))).fetch([(FILE, tmp_path / "part")])


def test_a_longer_file_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(WrongBytesError, match="more than the"):
        fetcher(Server(lambda _: httpx.Response(200, stream=httpx.ByteStream(DATA + b"x")))).fetch(
            [(FILE, tmp_path / "part")]
        )
    assert (tmp_path / "part").stat().st_size <= len(DATA)


def test_other_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongBytesError, match="another digest") as caught:
        fetcher(Server(*[lambda _: httpx.Response(200, stream=httpx.ByteStream(b"\0" * len(DATA)))] * 2)).fetch(
            [(FILE, tmp_path / "part")]
        )
    assert caught.value.error_class == "permanent"


def test_a_store_that_is_away_is_transient(tmp_path: Path) -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(FetchError, match="does not answer: ConnectError"):
        fetcher(Server(*[away] * ATTEMPTS)).fetch([(FILE, tmp_path / "part")])


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
        slow.fetch([(FILE, tmp_path / "part")])
    assert now[0] < 300


class Ranges:
    """A store of one object that gives ranges; `breaks` cut the first answers for a start short by that many bytes."""

    def __init__(self, data: bytes, **breaks: int) -> None:
        self.data = data
        self.breaks = {int(start.removeprefix("at_")): size for start, size in breaks.items()}
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        asked = request.headers["Range"]
        self.asked.append(asked)
        start, stop = (int(part) for part in asked.removeprefix("bytes=").split("-"))
        part = self.data[start : stop + 1]
        headers = {"Content-Range": f"bytes {start}-{stop}/{len(self.data)}"}
        if size := self.breaks.pop(start, 0):
            return httpx.Response(206, stream=Breaking(part[:size]), headers=headers)
        return httpx.Response(206, stream=httpx.ByteStream(part), headers=headers)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.node.disk.fetch.PART_BYTES", 4000)


@pytest.mark.usefixtures("small_parts")
def test_a_large_file_comes_in_parts_each_resumed_on_its_own(tmp_path: Path) -> None:
    store = Ranges(DATA, at_4000=100)
    http = httpx.Client(transport=httpx.MockTransport(store))
    Fetcher(http, sleep=lambda _: None).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA
    assert sorted(store.asked) == [
        "bytes=0-3999",
        "bytes=4000-7999",
        "bytes=4100-7999",
        "bytes=8000-10239",
    ]


@pytest.mark.usefixtures("small_parts")
def test_a_large_file_of_a_store_without_ranges_comes_whole(tmp_path: Path) -> None:
    server = Server(*[whole] * 4)
    fetcher(server).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.ranges[-1] is None


@pytest.mark.usefixtures("small_parts")
def test_a_part_that_is_longer_than_asked_for_is_refused(tmp_path: Path) -> None:
    def long(request: httpx.Request) -> httpx.Response:
        start = request.headers["Range"].removeprefix("bytes=").split("-")[0]
        headers = {"Content-Range": f"bytes {start}-9999999/{len(DATA)}"}
        return httpx.Response(206, stream=httpx.ByteStream(DATA), headers=headers)

    http = httpx.Client(transport=httpx.MockTransport(long))
    with pytest.raises(WrongBytesError, match="more than the"):
        Fetcher(http, sleep=lambda _: None).fetch([(FILE, tmp_path / "part")])


@pytest.mark.usefixtures("small_parts")
def test_one_part_that_fails_for_good_ends_the_others_and_says_why(tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403 if request.headers["Range"].startswith("bytes=8000-") else 503)

    http = httpx.Client(transport=httpx.MockTransport(answer))
    with pytest.raises(FetchError, match=r"HTTP (403|503, after)"):
        Fetcher(http, sleep=lambda _: None).fetch([(FILE, tmp_path / "part")])


def test_several_files_come_together(tmp_path: Path) -> None:
    small = WantedFile("a.json", 2, sha256_of(b"{}"), "http://store.test/small")

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(b"{}" if request.url.path == "/small" else DATA))

    http = httpx.Client(transport=httpx.MockTransport(answer))
    Fetcher(http).fetch([(FILE, tmp_path / "large"), (small, tmp_path / "small")])
    assert (tmp_path / "large").read_bytes() == DATA
    assert (tmp_path / "small").read_bytes() == b"{}"


def test_no_more_streams_than_the_limits_allow(tmp_path: Path) -> None:
    open_now, most, lock = [0], [0], Lock()

    class Slow(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            with lock:
                open_now[0] += 1
                most[0] = max(most[0], open_now[0])
            sleep(0.01)
            yield DATA
            with lock:
                open_now[0] -= 1

    http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=Slow())))
    limited = Fetcher(http, limits=lambda: Limits(concurrent_downloads=2))
    limited.fetch([(FILE, tmp_path / f"{number}") for number in range(6)])
    assert most == [2]


def test_a_download_for_a_command_that_is_void_is_given_up(tmp_path: Path) -> None:
    asked: list[int] = []

    def is_void() -> bool:
        asked.append(1)
        return len(asked) > 1

    with pytest.raises(SupersededError):
        fetcher(Server(whole)).fetch([(FILE, tmp_path / "part")], is_void=is_void)


def test_a_disk_without_room_for_it_says_so_before_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    server = Server()
    with pytest.raises(OSError, match="No space left"):
        fetcher(server).fetch([(FILE, tmp_path / "part")])
    assert server.ranges == []


@pytest.mark.usefixtures("small_parts")
def test_parts_that_don_t_fit_together_are_fetched_once_more_as_a_whole(tmp_path: Path) -> None:
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("Range"))
        if asked[-1] is None:
            return whole(request)
        start, stop = (int(part) for part in asked[-1].removeprefix("bytes=").split("-"))
        data = DATA[::-1] if start else DATA
        headers = {"Content-Range": f"bytes {start}-{stop}/{len(data)}"}
        return httpx.Response(206, stream=httpx.ByteStream(data[start : stop + 1]), headers=headers)

    http = httpx.Client(transport=httpx.MockTransport(answer))
    Fetcher(http, sleep=lambda _: None).fetch([(FILE, tmp_path / "part")])
    assert (tmp_path / "part").read_bytes() == DATA
    assert asked.count(None) == 1


@pytest.mark.usefixtures("small_parts")
def test_a_void_download_does_not_wait_for_another_one(tmp_path: Path) -> None:
    go, began = Event(), Event()

    class Hanging(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            began.set()
            go.wait(10)
            yield DATA

    http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=Hanging())))
    one = Fetcher(http, limits=lambda: Limits(concurrent_downloads=1), threads=1)
    large = replace(FILE, path="large", size=len(DATA) * 4)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.fetch, [(FILE, tmp_path / "first")])
        began.wait(5)
        with pytest.raises(SupersededError):
            one.fetch([(large, tmp_path / "second")], is_void=lambda: True)
        assert not first.done()
        go.set()
        first.result(5)


@pytest.mark.usefixtures("small_parts")
def test_a_small_download_does_not_wait_for_all_parts_of_a_large_one(tmp_path: Path) -> None:
    data = bytes(4000 * 40)
    large = WantedFile("large", len(data), sha256_of(data), "http://store.test/large")
    asked: list[str] = []
    second = Event()

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/x":
            return whole(request)
        second.wait(5)
        start, stop = (int(part) for part in request.headers["Range"].removeprefix("bytes=").split("-"))
        headers = {"Content-Range": f"bytes {start}-{stop}/{len(data)}"}
        return httpx.Response(206, stream=httpx.ByteStream(data[start : stop + 1]), headers=headers)

    http = httpx.Client(transport=httpx.MockTransport(answer))
    fetcher_of_two = Fetcher(http, limits=lambda: Limits(concurrent_downloads=2), threads=2)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(fetcher_of_two.fetch, [(large, tmp_path / "large")])
        while len(asked) < 2:
            sleep(0.001)
        other = pool.submit(fetcher_of_two.fetch, [(FILE, tmp_path / "other")])
        sleep(0.05)
        second.set()
        other.result(10)
        first.result(10)
    assert asked.index("/x") < 12
