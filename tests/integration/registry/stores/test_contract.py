"""What the registry relies on, tried on every store."""

import hashlib
import io
import threading
import time

import httpx
import pytest

from registry.naming import object_key
from registry.stores.errors import BadKey, ObjectMissing, StoreDigestMismatch, StoreSizeMismatch
from registry.stores.ports import ArtifactStore, PresignedPut, StoredObject

BODY = bytes(range(256)) * 40
SHA = hashlib.sha256(BODY).hexdigest()
KEY = object_key(tenant="acme", sha256=SHA)
BIG = 20 * 1024 * 1024


def _put(store: ArtifactStore, body: bytes = BODY) -> str:
    sha256 = hashlib.sha256(body).hexdigest()
    key = object_key(tenant="acme", sha256=sha256)
    store.put_stream(key, io.BytesIO(body), size=len(body), sha256=sha256)
    return key


def _presign(store: ArtifactStore, *, expires_s: int = 60) -> PresignedPut:
    return store.presign_put(KEY, size=len(BODY), sha256=SHA, expires_s=expires_s)


def _send(put: PresignedPut, body: bytes, **headers: str) -> int:
    return httpx.request(put.method, put.url, content=body, headers=put.headers | headers).status_code


def _read(store: ArtifactStore, key: str = KEY) -> bytes:
    with store.open(key) as stream:
        return stream.read()


def test_what_was_put_is_read_back(store: ArtifactStore) -> None:
    _put(store)
    assert store.stat(KEY) == StoredObject(key=KEY, size=len(BODY), sha256=SHA)
    assert _read(store) == BODY


@pytest.mark.parametrize("size", [0, 1, BIG])
def test_empty_and_large_objects_keep_the_digest_that_the_store_checked(store: ArtifactStore, size: int) -> None:
    body = b"\x07" * size
    key = _put(store, body)
    assert store.stat(key) == StoredObject(key=key, size=size, sha256=hashlib.sha256(body).hexdigest())
    assert _read(store, key) == body


def test_a_large_object_is_read_in_pieces(store: ArtifactStore) -> None:
    key = _put(store, b"\x09" * BIG)
    with store.open(key) as stream:
        assert stream.read(10) == b"\x09" * 10
        assert sum(len(chunk) for chunk in iter(lambda: stream.read(1 << 20), b"")) == BIG - 10


def test_a_stream_reads_on_from_wherever_it_was_sent(store: ArtifactStore) -> None:
    with store.open(_put(store)) as stream:
        assert [stream.seek(5_000), stream.read(3)] == [5_000, BODY[5_000:5_003]]
        assert [stream.seek(0), stream.read(2)] == [0, BODY[:2]]
        assert [stream.seek(-4, io.SEEK_END), stream.read()] == [len(BODY) - 4, BODY[-4:]]
        assert [stream.seek(len(BODY)), stream.read(1)] == [len(BODY), b""]


def test_a_second_identical_put_is_success(store: ArtifactStore) -> None:
    _put(store)
    _put(store)
    assert _read(store) == BODY


def test_a_put_of_what_is_there_reads_nothing(store: ArtifactStore) -> None:
    _put(store)
    stream = io.BytesIO(BODY)
    store.put_stream(KEY, stream, size=len(BODY), sha256=SHA)
    assert stream.tell() == 0


WRONG = {
    "other bytes": (BODY[:-1] + b"x", StoreDigestMismatch),
    "too short": (BODY[:-1], StoreSizeMismatch),
    "too long": (BODY + b"x", StoreSizeMismatch),
    "empty": (b"", StoreSizeMismatch),
}


@pytest.mark.parametrize(("body", "error"), WRONG.values(), ids=WRONG)
def test_a_wrong_stream_is_refused_and_nothing_is_left(
    store: ArtifactStore, body: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        store.put_stream(KEY, io.BytesIO(body), size=len(BODY), sha256=SHA)
    assert store.stat(KEY) is None
    _put(store)
    assert _read(store) == BODY


def test_a_stream_that_cannot_be_rewound_is_accepted(store: ArtifactStore) -> None:
    class Forward(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, offset: int, whence: int = 0, /) -> int:
            raise io.UnsupportedOperation

        def tell(self) -> int:
            raise io.UnsupportedOperation

    store.put_stream(KEY, Forward(BODY), size=len(BODY), sha256=SHA)
    assert _read(store) == BODY


@pytest.mark.parametrize(
    "key", ["x", "artifacts/../ab/" + SHA, f"artifacts/acme/00/{SHA}", object_key(tenant="acme", sha256="0" * 64)]
)
def test_a_key_that_does_not_name_the_digest_is_refused(store: ArtifactStore, key: str) -> None:
    with pytest.raises(BadKey):
        store.put_stream(key, io.BytesIO(BODY), size=len(BODY), sha256=SHA)
    with pytest.raises(BadKey):
        store.presign_put(key, size=len(BODY), sha256=SHA, expires_s=60)


def test_what_is_not_there_is_missing(store: ArtifactStore) -> None:
    assert store.stat(KEY) is None
    with pytest.raises(ObjectMissing), store.open(KEY):
        pass
    assert httpx.get(store.presign_get(KEY, expires_s=60)).status_code == 404


def test_a_delete_is_idempotent_and_lets_the_object_be_put_again(store: ArtifactStore) -> None:
    store.delete(KEY)
    _put(store)
    store.delete(KEY)
    store.delete(KEY)
    assert store.stat(KEY) is None
    _put(store)
    assert _read(store) == BODY


def test_getting_ready_twice_keeps_everything(store: ArtifactStore) -> None:
    _put(store)
    store.ensure_ready()
    assert _read(store) == BODY


def test_anybody_with_the_presigned_request_can_put_and_get(store: ArtifactStore) -> None:
    assert _send(_presign(store), BODY) in {200, 201}
    assert store.stat(KEY) == StoredObject(key=KEY, size=len(BODY), sha256=SHA)
    answer = httpx.get(store.presign_get(KEY, expires_s=60))
    assert (answer.status_code, answer.content) == (200, BODY)


@pytest.mark.parametrize("body", [body for body, _ in WRONG.values()], ids=WRONG)
def test_a_presigned_put_of_anything_else_is_refused_and_nothing_is_left(store: ArtifactStore, body: bytes) -> None:
    assert _send(_presign(store), body, **{"Content-Length": str(len(body))}) in {400, 403}
    assert store.stat(KEY) is None
    assert _send(_presign(store), BODY) in {200, 201}


def test_a_presigned_put_never_overwrites(store: ArtifactStore) -> None:
    put = _presign(store)
    assert _send(put, BODY) in {200, 201}
    assert _send(put, BODY) == 412
    assert _send(put, BODY[:-1] + b"x") in {400, 403, 412}
    assert _read(store) == BODY


def test_a_presigned_put_is_for_its_key_alone(store: ArtifactStore) -> None:
    put = _presign(store)
    other = object_key(tenant="other", sha256=SHA)
    moved = put.url.replace(KEY, other) if KEY in put.url else put.url[:-1] + ("A" if put.url[-1] != "A" else "B")
    assert httpx.put(moved, content=BODY, headers=put.headers).status_code == 403
    assert store.stat(other) is None
    assert store.stat(KEY) is None


def test_an_address_to_read_is_not_one_to_write(store: ArtifactStore) -> None:
    url = store.presign_get(KEY, expires_s=60)
    assert httpx.put(url, content=BODY, headers=_presign(store).headers).status_code == 403
    assert store.stat(KEY) is None


def test_an_expired_address_is_refused(store: ArtifactStore) -> None:
    put = _presign(store, expires_s=1)
    _put(store)
    get = store.presign_get(KEY, expires_s=1)
    time.sleep(2.1)
    assert httpx.get(get).status_code == 403
    store.delete(KEY)
    assert _send(put, BODY) == 403
    assert store.stat(KEY) is None


def test_two_puts_at_once_both_succeed_and_store_one_object(store: ArtifactStore) -> None:
    failures: list[BaseException] = []
    gate = threading.Barrier(4)

    def put() -> None:
        gate.wait()
        try:
            _put(store)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert _read(store) == BODY
