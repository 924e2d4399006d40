import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.workers.node.kit import sha256_of
from workers.node.commands import WantedFile
from workers.node.disk_cache import RESERVED_BYTES, DiskCache
from workers.node.errors import CommandError, DiskFullError

TEXTS = {"model.sig": "bundle", "release.intoto.json": "attestation"}


def wanted(contents: Mapping[str, bytes]) -> list[WantedFile]:
    return [WantedFile(path, len(data), sha256_of(data), "http://store.test/x") for path, data in contents.items()]


def fill(cache: DiskCache, contents: Mapping[str, bytes]) -> list[WantedFile]:
    files = wanted(contents)
    for file in cache.missing(files):
        partial = cache.partial_path(file.sha256)
        partial.write_bytes(contents[file.path])
        cache.adopt(partial, file.sha256)
    return files


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    made = DiskCache(tmp_path)
    made.prepare()
    return made


def blobs(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "blobs").iterdir()}


def test_a_version_is_placed_with_its_signatures(cache: DiskCache, tmp_path: Path) -> None:
    folder = cache.place("lk-a", fill(cache, {"a.json": b"{}", "sub/b.json": b"[]"}), TEXTS)
    assert folder == tmp_path / "versions" / "lk-a"
    assert (folder / "sub/b.json").read_bytes() == b"[]"
    assert (folder / "model.sig").read_text() == "bundle"
    assert cache.names() == ("lk-a",)
    assert list((tmp_path / "partial").iterdir()) == []


def test_two_versions_share_a_file_on_disk(cache: DiskCache, tmp_path: Path) -> None:
    cache.place("lk-a", fill(cache, {"a.json": b"same", "b.json": b"one"}), TEXTS)
    cache.place("lk-b", fill(cache, {"a.json": b"same", "b.json": b"two"}), TEXTS)
    assert (tmp_path / "versions/lk-a/a.json").samefile(tmp_path / "versions/lk-b/a.json")


def test_deleting_a_version_keeps_what_another_uses(cache: DiskCache, tmp_path: Path) -> None:
    cache.place("lk-a", fill(cache, {"a.json": b"same", "b.json": b"one"}), TEXTS)
    cache.place("lk-b", fill(cache, {"a.json": b"same", "b.json": b"two"}), TEXTS)
    cache.delete("lk-a")
    cache.delete("lk-a")
    assert blobs(tmp_path) == {sha256_of(b"same"), sha256_of(b"two")}
    assert cache.names() == ("lk-b",)


def test_what_is_there_is_not_missing(cache: DiskCache) -> None:
    fill(cache, {"a.json": b"here"})
    twice = wanted({"a.json": b"here", "b.json": b"not", "c.json": b"not"})
    assert [file.sha256 for file in cache.missing(twice)] == [sha256_of(b"not")]


def test_a_truncated_blob_is_missing(cache: DiskCache, tmp_path: Path) -> None:
    (file,) = fill(cache, {"a.json": b"whole"})
    blob = tmp_path / "blobs" / file.sha256
    blob.chmod(0o644)
    os.truncate(blob, 2)
    assert cache.missing([file]) == (file,)


def test_a_corrupted_blob_is_dropped_and_the_version_mended(cache: DiskCache, tmp_path: Path) -> None:
    contents = {"a.json": b"right", "b.json": b"fine"}
    files = fill(cache, contents)
    folder = cache.place("lk-a", files, TEXTS)
    (folder / "a.json").chmod(0o644)
    (folder / "a.json").write_bytes(b"wrong")
    assert cache.drop_corrupted(files) == 1
    fill(cache, contents)
    cache.place("lk-a", files, TEXTS)
    assert (folder / "a.json").read_bytes() == b"right"
    assert cache.drop_corrupted(files) == 0


def test_a_stranger_in_a_version_is_removed(cache: DiskCache) -> None:
    files = fill(cache, {"a.json": b"{}"})
    folder = cache.place("lk-a", files, TEXTS)
    (folder / "x").mkdir()
    (folder / "x/evil.json").write_text("{}")
    (folder / "link").symlink_to("/etc/passwd")
    cache.place("lk-a", files, TEXTS)
    assert {path.name for path in folder.iterdir()} == {"a.json", *TEXTS}


def test_a_link_in_place_of_a_file_is_replaced(cache: DiskCache) -> None:
    files = fill(cache, {"a.json": b"{}"})
    folder = cache.place("lk-a", files, TEXTS)
    (folder / "a.json").unlink()
    (folder / "a.json").symlink_to("/etc/passwd")
    cache.place("lk-a", files, TEXTS)
    assert not (folder / "a.json").is_symlink()


def test_a_crash_leaves_nothing_for_the_next_start(cache: DiskCache, tmp_path: Path) -> None:
    cache.place("lk-a", fill(cache, {"a.json": b"kept"}), TEXTS)
    fill(cache, {"b.json": b"no version yet"})
    cache.partial_path("0" * 64).write_bytes(b"half")
    (tmp_path / "partial/lk-b.1234").mkdir()
    cache.prepare()
    assert blobs(tmp_path) == {sha256_of(b"kept")}
    assert list((tmp_path / "partial").iterdir()) == []
    assert cache.names() == ("lk-a",)


def test_a_file_beyond_the_budget_is_refused_with_the_numbers(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, budget_bytes=10)
    cache.prepare()
    cache.ensure_room(fill(cache, {"a.json": b"1234"}))
    with pytest.raises(DiskFullError, match="needs 7 bytes, 6 of the budget of 10 are left"):
        cache.ensure_room(wanted({"b.json": b"1234567"}))


def test_a_file_beyond_the_free_disk_is_refused(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, free=lambda _: RESERVED_BYTES + 3)
    cache.prepare()
    with pytest.raises(DiskFullError, match="needs 4 bytes, the disk has 3"):
        cache.ensure_room(wanted({"a.json": b"1234"}))


@pytest.mark.parametrize("name", ["..", "lk-a/../../x", "LK-A", "", "lk-"])
def test_a_name_that_is_none_gets_no_folder(cache: DiskCache, name: str) -> None:
    with pytest.raises(CommandError):
        cache.folder(name)
