import hashlib
import io
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from registry.naming import object_key
from registry.stores.errors import ObjectMissing, StoreDigestMismatch, StoreUnavailable
from registry.stores.folder import FolderStore

BODY = b"bytes"
SHA = hashlib.sha256(BODY).hexdigest()
KEY = object_key(tenant="acme", sha256=SHA)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    store = FolderStore(folder=tmp_path, public_url="http://127.0.0.1:1/", secret=b"s")
    store.ensure_ready()
    return store


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_an_object_is_a_read_only_file_named_by_its_key(store: FolderStore, tmp_path: Path) -> None:
    store.put_stream(KEY, io.BytesIO(BODY), size=5, sha256=SHA)
    assert _files(tmp_path) == [KEY]
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o440


def test_a_refused_put_leaves_no_file_at_all(store: FolderStore, tmp_path: Path) -> None:
    with pytest.raises(StoreDigestMismatch):
        store.put_stream(KEY, io.BytesIO(b"other"), size=5, sha256=SHA)
    assert _files(tmp_path) == []


def test_what_a_killed_put_left_is_removed_once_it_is_old(store: FolderStore, tmp_path: Path) -> None:
    old, new = tmp_path / "incoming/old", tmp_path / "incoming/new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1.0, 1.0))
    assert store.remove_abandoned(before=datetime.fromtimestamp(2.0, UTC)) == 1
    assert _files(tmp_path) == ["incoming/new"]


def test_a_part_of_a_name_that_is_no_upload_is_not_written_anywhere(store: FolderStore, tmp_path: Path) -> None:
    for upload_id in ("../../escape", "", "0" * 31):
        with pytest.raises(ObjectMissing):
            store.list_parts(KEY, upload_id)
    assert _files(tmp_path) == []


def test_a_part_that_comes_again_with_other_bytes_takes_the_place_of_the_first(store: FolderStore) -> None:
    upload_id = store.start_parts(KEY)
    for part in (b"first", b"the second", b"first"):
        digest = hashlib.sha256(part).hexdigest()
        put = store.presign_part(KEY, upload_id, number=1, size=len(part), sha256=digest, expires_s=60)
        store.accept_put(put.url.rpartition("/")[2], io.BytesIO(part), content_length=len(part))
        assert [found.sha256 for found in store.list_parts(KEY, upload_id)] == [digest]


@contextmanager
def full_disk_after(octets: int) -> Iterator[None]:
    """No file of this process can grow beyond `octets`; the system says so when it is written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_worth_another_try_and_leaves_nothing_behind(store: FolderStore, tmp_path: Path) -> None:
    body = bytes(300_000)
    digest = hashlib.sha256(body).hexdigest()
    key = object_key(tenant="acme", sha256=digest)
    upload_id = store.start_parts(key)
    put = store.presign_part(key, upload_id, number=1, size=len(body), sha256=digest, expires_s=60)
    ticket = put.url.rpartition("/")[2]
    with full_disk_after(100_000):
        with pytest.raises(StoreUnavailable):
            store.put_stream(key, io.BytesIO(body), size=len(body), sha256=digest)
        with pytest.raises(StoreUnavailable):
            store.accept_put(ticket, io.BytesIO(body), content_length=len(body))
    assert _files(tmp_path) == []
    store.accept_put(ticket, io.BytesIO(body), content_length=len(body))
    with full_disk_after(100_000), pytest.raises(StoreUnavailable):
        store.complete_parts(key, upload_id, store.list_parts(key, upload_id))
    assert store.stat(key) is None
    store.complete_parts(key, upload_id, store.list_parts(key, upload_id))
    assert store.stat(key) is not None


def test_addresses_are_below_the_public_url(store: FolderStore) -> None:
    assert store.presign_get(KEY, expires_s=5).startswith("http://127.0.0.1:1/store/")


def test_a_folder_that_is_not_there_is_worth_another_try(tmp_path: Path) -> None:
    store = FolderStore(folder=tmp_path / "gone", public_url="http://127.0.0.1:1", secret=b"s")
    with pytest.raises(StoreUnavailable):
        store.put_stream(KEY, io.BytesIO(BODY), size=5, sha256=SHA)
