import hashlib
import io
import os
import stat
import time
from pathlib import Path

import pytest

from registry.naming import object_key
from registry.stores.errors import StoreDigestMismatch, StoreUnavailable
from registry.stores.folder import ABANDONED_AFTER_S, FolderStore

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


def test_getting_ready_removes_only_what_was_abandoned_long_ago(store: FolderStore, tmp_path: Path) -> None:
    old, new = tmp_path / "incoming/old", tmp_path / "incoming/new"
    for path in (old, new):
        path.write_bytes(b"half")
    long_ago = time.time() - ABANDONED_AFTER_S - 1
    os.utime(old, (long_ago, long_ago))
    store.ensure_ready()
    assert _files(tmp_path) == ["incoming/new"]


def test_addresses_are_below_the_public_url(store: FolderStore) -> None:
    assert store.presign_get(KEY, expires_s=5).startswith("http://127.0.0.1:1/store/")


def test_a_folder_that_is_not_there_is_worth_another_try(tmp_path: Path) -> None:
    store = FolderStore(folder=tmp_path / "gone", public_url="http://127.0.0.1:1", secret=b"s")
    with pytest.raises(StoreUnavailable):
        store.put_stream(KEY, io.BytesIO(BODY), size=5, sha256=SHA)
