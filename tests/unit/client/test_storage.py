import hashlib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from client.errors import DigestMismatch, FolderRefused, ServerUnreachable, TransferFailed
from client.manifest import LocalFile, read_manifest
from client.models import Upload, VersionFile
from client.parallel import CancelSwitch
from client.parts import PartAddress
from client.progress import Action, SilentProgress
from client.retry import RetryPolicy
from client.storage import Storage, UrlExpired

Handler = Callable[[httpx.Request], httpx.Response]
WEIGHTS = b"weights" * 100_000
UPLOAD = Upload(path="weights", url="http://store.test/k?sig=secret", headers={"x-amz-checksum-sha256": "abc="})


@pytest.fixture
def source(tmp_path: Path) -> LocalFile:
    (tmp_path / "weights").write_bytes(WEIGHTS)
    return read_manifest(tmp_path)[0]


def storage(handler: Handler) -> Storage:
    http = httpx.Client(transport=httpx.MockTransport(handler))
    return Storage(http=http, retry=RetryPolicy(attempts=3, sleep=lambda _seconds: None))


def put(handler: Handler, source: LocalFile) -> bool:
    return storage(handler).put(UPLOAD, source, progress=SilentProgress(), cancel=CancelSwitch())


def test_a_file_is_sent_with_its_length_the_given_headers_and_no_token(source: LocalFile) -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        request.read()
        seen.append(request)
        return httpx.Response(200)

    assert put(handler, source) is True
    assert seen[0].content == WEIGHTS
    assert seen[0].headers["content-length"] == str(len(WEIGHTS))
    assert seen[0].headers["x-amz-checksum-sha256"] == "abc="
    assert "transfer-encoding" not in seen[0].headers
    assert "authorization" not in seen[0].headers


def test_a_412_means_that_the_store_has_it(source: LocalFile) -> None:
    assert put(lambda _request: httpx.Response(412), source) is False


def test_a_broken_transfer_begins_again_from_the_first_byte(source: LocalFile) -> None:
    tries: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tries.append(request.read())
        if len(tries) == 1:
            raise httpx.WriteError("reset", request=request)
        return httpx.Response(503 if len(tries) == 2 else 200)

    assert put(handler, source) is True
    assert tries == [WEIGHTS] * 3


def test_an_unreachable_store_is_named_without_the_signature(source: LocalFile) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(ServerUnreachable) as caught:
        put(handler, source)
    assert "http://store.test/k" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_stores_own_words_are_told(source: LocalFile) -> None:
    xml = "<Error><Code>BadDigest</Code><Message>The digest did not match.</Message></Error>"
    with pytest.raises(TransferFailed, match=r"weights was refused .*BadDigest: The digest did not match") as caught:
        put(lambda _request: httpx.Response(400, text=xml), source)
    assert caught.value.path == "weights"


def test_an_expired_url_is_its_own_error(source: LocalFile) -> None:
    with pytest.raises(UrlExpired):
        put(lambda _request: httpx.Response(403), source)


def test_a_file_that_changed_since_it_was_hashed_is_refused(source: LocalFile) -> None:
    source.location.write_bytes(b"short")

    def handler(request: httpx.Request) -> httpx.Response:
        request.read()
        return httpx.Response(200)

    with pytest.raises(FolderRefused, match="weights changed"):
        put(handler, source)


def test_a_file_replaced_by_a_symlink_is_refused(source: LocalFile) -> None:
    source.location.unlink()
    source.location.symlink_to("/etc/passwd")

    def handler(request: httpx.Request) -> httpx.Response:
        request.read()
        return httpx.Response(200)

    with pytest.raises(FolderRefused, match="weights can't be read"):
        put(handler, source)


def get(content: bytes, target: Path, declared: bytes = WEIGHTS) -> None:
    file = VersionFile("weights", len(declared), hashlib.sha256(declared).hexdigest())
    server = storage(lambda _request: httpx.Response(200, content=iter([content])))
    server.get("http://store.test/k", target, file, progress=SilentProgress(), cancel=CancelSwitch())


def test_a_file_arrives_whole(tmp_path: Path) -> None:
    get(WEIGHTS, tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == WEIGHTS


def test_other_bytes_are_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(DigestMismatch, match="weights has digest"):
        get(WEIGHTS[:-1] + b"!", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [WEIGHTS[:-1], WEIGHTS + b"!", b""])
def test_another_size_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TransferFailed, match="another size"):
        get(content, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_empty_file_arrives(tmp_path: Path) -> None:
    get(b"", tmp_path / "new", declared=b"")
    assert (tmp_path / "new").read_bytes() == b""


def test_an_address_that_is_none_is_a_failed_transfer(source: LocalFile) -> None:
    upload = Upload(path="weights", url="http://x:port/", headers={})
    with pytest.raises(TransferFailed):
        storage(lambda _: httpx.Response(200)).put(upload, source, progress=SilentProgress(), cancel=CancelSwitch())


def test_headers_that_cannot_be_sent_are_a_failed_transfer(source: LocalFile) -> None:
    upload = Upload(path="weights", url="http://store.test/k", headers={"x-a": "é"})
    with pytest.raises(TransferFailed):
        storage(lambda _: httpx.Response(200)).put(upload, source, progress=SilentProgress(), cancel=CancelSwitch())


def test_a_part_is_its_span_of_the_file_and_a_retry_takes_back_what_was_counted(source: LocalFile) -> None:
    bodies: list[bytes] = []
    counted: list[int] = []

    class Watch(SilentProgress):
        def moved(self, action: Action, path: str, count: int) -> None:
            counted.append(count)

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(request.read())
        return httpx.Response(503 if len(bodies) == 1 else 200)

    address = PartAddress(number=2, url="http://store.test/k?partNumber=2", headers={"x-amz-checksum-sha256": "abc="})
    storage(handler).put_part(source, address, start=300_000, size=350_000, progress=Watch(), cancel=CancelSwitch())
    assert bodies == [WEIGHTS[300_000:650_000]] * 2
    assert sum(counted) == 350_000
    assert -350_000 in counted


def test_a_part_whose_address_expired_asks_for_another_and_counts_for_nothing(source: LocalFile) -> None:
    counted: list[int] = []

    class Watch(SilentProgress):
        def moved(self, action: Action, path: str, count: int) -> None:
            counted.append(count)

    address = PartAddress(number=1, url="http://store.test/k")
    with pytest.raises(UrlExpired):
        storage(lambda _request: httpx.Response(403)).put_part(
            source, address, start=0, size=100, progress=Watch(), cancel=CancelSwitch()
        )
    assert sum(counted) == 0
