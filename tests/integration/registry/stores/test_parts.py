"""Uploads in parts, tried on every store."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from registry.naming import object_key
from registry.stores.errors import ObjectMissing, StoreDigestMismatch
from registry.stores.ports import ArtifactStore, PresignedPut, StoredPart

# The smallest part that S3 takes, but for the last one.
PART = 5 * 1024 * 1024
PARTS = (b"\x01" * PART, b"the end")
BODY = b"".join(PARTS)
KEY = object_key(tenant="acme", sha256=hashlib.sha256(BODY).hexdigest())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def presign(store: ArtifactStore, upload_id: str, number: int, part: bytes) -> PresignedPut:
    return store.presign_part(KEY, upload_id, number=number, size=len(part), sha256=sha256(part), expires_s=60)


def send(put: PresignedPut, body: bytes) -> int:
    headers = put.headers | {"Content-Length": str(len(body))}
    return httpx.request(put.method, put.url, content=body, headers=headers).status_code


def sent(store: ArtifactStore, parts: Sequence[bytes] = PARTS) -> str:
    upload_id = store.start_parts(KEY)
    for number, part in enumerate(parts, start=1):
        assert send(presign(store, upload_id, number, part), part) in {200, 201}
    return upload_id


def listed(store: ArtifactStore, upload_id: str, parts: Sequence[bytes] = PARTS) -> list[StoredPart]:
    found = store.list_parts(KEY, upload_id)
    return [replace(part, sha256=sha256(data)) for part, data in zip(found, parts, strict=True)]


def read(store: ArtifactStore) -> bytes:
    with store.open(KEY) as stream:
        return stream.read()


def test_parts_become_the_object_when_they_are_completed_and_not_before(store: ArtifactStore) -> None:
    upload_id = store.start_parts(KEY)
    assert store.list_parts(KEY, upload_id) == ()
    # In any order, and twice.
    for number in (2, 1, 2):
        assert send(presign(store, upload_id, number, PARTS[number - 1]), PARTS[number - 1]) in {200, 201}
    assert [(part.number, part.size) for part in store.list_parts(KEY, upload_id)] == [(1, PART), (2, 7)]
    assert store.stat(KEY) is None
    store.complete_parts(KEY, upload_id, listed(store, upload_id))
    stored = store.stat(KEY)
    assert stored is not None
    assert stored.size == len(BODY)
    # A store that hasn't read the whole doesn't vouch for its digest.
    assert stored.sha256 in {None, sha256(BODY)}
    assert read(store) == BODY


def test_a_part_of_other_bytes_is_refused(store: ArtifactStore) -> None:
    upload_id = store.start_parts(KEY)
    put = presign(store, upload_id, 1, b"part")
    assert [send(put, body) for body in (b"trap", b"par", b"parts", b"")] == [pytest.approx(400, abs=3)] * 4
    assert store.list_parts(KEY, upload_id) == ()


def test_completing_never_overwrites_and_is_quiet_about_it(store: ArtifactStore) -> None:
    upload_id, other = sent(store), sent(store, (b"something else",))
    store.complete_parts(KEY, upload_id, listed(store, upload_id))
    store.complete_parts(KEY, other, listed(store, other, (b"something else",)))
    assert read(store) == BODY
    assert len(store.list_parts(KEY, other)) == 1
    store.delete(KEY)
    store.abort_parts(KEY, other)


def test_completing_again_after_a_lost_answer_is_quiet(store: ArtifactStore) -> None:
    upload_id = sent(store)
    parts = listed(store, upload_id)
    store.complete_parts(KEY, upload_id, parts)
    store.complete_parts(KEY, upload_id, parts)
    assert read(store) == BODY


def test_a_whole_put_of_what_came_in_parts_never_overwrites(store: ArtifactStore) -> None:
    upload_id = sent(store)
    store.complete_parts(KEY, upload_id, listed(store, upload_id))
    put = store.presign_put(KEY, size=len(BODY), sha256=sha256(BODY), expires_s=60)
    assert send(put, BODY) == 412
    store.put_stream(KEY, io.BytesIO(BODY), size=len(BODY), sha256=sha256(BODY))
    assert read(store) == BODY


def test_what_is_not_the_whole_is_refused_at_once_or_not_vouched_for(store: ArtifactStore) -> None:
    upload_id = sent(store, (b"something else",))
    try:
        store.complete_parts(KEY, upload_id, listed(store, upload_id, (b"something else",)))
    except StoreDigestMismatch:
        assert store.stat(KEY) is None
    else:
        stored = store.stat(KEY)
        assert stored is not None
        assert stored.sha256 is None


def test_an_aborted_upload_is_gone_with_its_addresses(store: ArtifactStore) -> None:
    upload_id = sent(store, (b"part",))
    store.abort_parts(KEY, upload_id)
    store.abort_parts(KEY, upload_id)
    assert send(presign(store, upload_id, 1, b"part"), b"part") == 404
    with pytest.raises(ObjectMissing):
        store.list_parts(KEY, upload_id)
    with pytest.raises(ObjectMissing):
        store.complete_parts(KEY, upload_id, [StoredPart(1, 4, "tag", sha256(b"part"))])
    assert store.stat(KEY) is None


def test_only_abandoned_uploads_are_removed(store: ArtifactStore) -> None:
    now = datetime.now(UTC)
    abandoned = sent(store, (b"part",))
    assert store.remove_abandoned(before=now - timedelta(hours=1)) == 0
    assert len(store.list_parts(KEY, abandoned)) == 1
    assert store.remove_abandoned(before=now + timedelta(hours=1)) == 1
    with pytest.raises(ObjectMissing):
        store.list_parts(KEY, abandoned)
