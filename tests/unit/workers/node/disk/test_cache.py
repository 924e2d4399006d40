import errno
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.workers.node.kit import Clock, sha256_of
from workers.node.commands import WantedFile
from workers.node.disk.cache import RESERVED_BYTES, DiskCache
from workers.node.disk.index import Kept
from workers.node.errors import CommandError, DiskFullError, SupersededError

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


def test_a_file_beyond_the_budget_is_refused_with_the_numbers(cache: DiskCache) -> None:
    fill(cache, {"a.json": b"1234"})
    with (
        pytest.raises(DiskFullError, match="needs 7 bytes, 6 of the budget of 10 are left"),
        cache.room_for(wanted({"b.json": b"1234567"}), budget_bytes=10),
    ):
        pass


def test_a_file_beyond_the_free_disk_is_refused(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, free=lambda _: RESERVED_BYTES + 3)
    cache.prepare()
    with (
        pytest.raises(DiskFullError, match="needs 4 bytes, the disk has 3"),
        cache.room_for(wanted({"a.json": b"1234"}), budget_bytes=None),
    ):
        pass


def test_what_is_being_downloaded_counts_until_it_is_over(cache: DiskCache) -> None:
    one, other = wanted({"a.json": b"1234"}), wanted({"b.json": b"1234567"})
    with cache.room_for(one, budget_bytes=10):
        assert cache.used_bytes() == 4
        with pytest.raises(DiskFullError, match="6 of the budget"), cache.room_for(other, budget_bytes=10):
            pass
    with cache.room_for(other, budget_bytes=10):
        assert cache.used_bytes() == 7


def test_room_that_a_download_has_taken_is_not_asked_of_the_disk_again(tmp_path: Path) -> None:
    free = RESERVED_BYTES + 10
    cache = DiskCache(tmp_path, free=lambda _: free)
    cache.prepare()
    with cache.room_for(wanted({"a.json": b"1234"}), budget_bytes=None):
        free -= 4
        assert cache.free_bytes() == 6
        with cache.room_for(wanted({"b.json": b"123456"}), budget_bytes=None):
            pass


def test_a_download_that_is_not_placed_yet_is_not_cleared_away_by_a_deletion(cache: DiskCache, tmp_path: Path) -> None:
    cache.place("lk-a", fill(cache, {"a.json": b"same"}), TEXTS)
    files = wanted({"b.json": b"new", "a.json": b"same"})
    with cache.pinned(files):
        fill(cache, {"b.json": b"new"})
        cache.delete("lk-a")
        cache.place("lk-b", files, TEXTS)
    assert blobs(tmp_path) == {sha256_of(b"new"), sha256_of(b"same")}


def test_a_download_that_is_never_placed_is_cleared_away(cache: DiskCache, tmp_path: Path) -> None:
    files = wanted({"b.json": b"new"})
    with cache.pinned(files):
        fill(cache, {"b.json": b"new"})
    assert blobs(tmp_path) == set()
    assert cache.used_bytes() == 0


def test_one_digest_is_downloaded_by_one_at_a_time(cache: DiskCache) -> None:
    files, order = wanted({"a.json": b"same"}), list[str]()
    with ThreadPoolExecutor(1) as pool, cache.downloading(files):

        def second() -> None:
            with cache.downloading(files):
                order.append("second")

        waiting = pool.submit(second)
        with cache.downloading(wanted({"b.json": b"other"})):
            order.append("another digest")
        order.append("first")
    waiting.result(5)
    assert order == ["another digest", "first", "second"]


def test_a_restart_knows_what_is_there_and_when_it_was_used(tmp_path: Path) -> None:
    clock = Clock()
    before = DiskCache(tmp_path, clock=clock)
    before.prepare()
    before.place("lk-a", fill(before, {"a.json": b"same", "b.json": b"one"}), TEXTS)
    clock.time += 50
    before.place("lk-b", fill(before, {"a.json": b"same", "b.json": b"two!"}), TEXTS)
    before.touch("lk-b")
    clock.time += 50
    before.touch("lk-a")
    after = DiskCache(tmp_path, clock=clock)
    after.prepare()
    assert set(after.kept()) == {Kept("lk-a", clock.time, own_bytes=3), Kept("lk-b", clock.time - 50, own_bytes=4)}
    assert after.used_bytes() == before.used_bytes() == 11
    assert after.incomplete() == ()


def test_a_version_with_a_corrupted_file_is_incomplete_also_after_a_restart(cache: DiskCache, tmp_path: Path) -> None:
    files = fill(cache, {"a.json": b"right"})
    path = cache.place("lk-a", files, TEXTS) / "a.json"
    path.chmod(0o644)
    path.write_bytes(b"wrong")
    assert cache.incomplete() == ()
    assert cache.drop_if_corrupted(files[0].sha256)
    assert not cache.drop_if_corrupted(files[0].sha256)
    assert cache.incomplete() == ("lk-a",)
    again = DiskCache(tmp_path)
    again.prepare()
    assert again.incomplete() == ("lk-a",)
    fill(again, {"a.json": b"right"})
    again.place("lk-a", files, TEXTS)
    assert again.incomplete() == ()


@pytest.mark.parametrize("how", ["corrupted", "removed"])
def test_one_versions_new_file_does_not_pass_for_that_of_another_which_shared_the_lost_one(
    cache: DiskCache, tmp_path: Path, how: str
) -> None:
    files = fill(cache, {"a.json": b"right"})
    for name in ("lk-a", "lk-b"):
        cache.place(name, files, TEXTS)
    blob = tmp_path / "blobs" / files[0].sha256
    if how == "corrupted":
        blob.chmod(0o644)
        blob.write_bytes(b"wrong")
        cache.drop_corrupted(files)
    else:
        blob.unlink()
    fill(cache, {"a.json": b"right"})
    cache.place("lk-a", files, TEXTS)
    assert cache.incomplete() == ("lk-b",)
    cache.delete("lk-a")
    assert not blob.exists()
    fill(cache, {"a.json": b"right"})
    cache.place("lk-b", files, TEXTS)
    assert (cache.incomplete(), blob.stat().st_nlink) == ((), 2)


def test_a_version_that_is_there_as_it_should_be_is_not_written_again(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fill(cache, {"a.json": b"{}"})
    cache.place("lk-a", files, TEXTS)
    synced = list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    cache.place("lk-a", files, TEXTS)
    assert synced == []


@pytest.mark.parametrize("name", ["..", "lk-a/../../x", "LK-A", "", "lk-"])
def test_a_name_that_is_none_gets_no_folder(cache: DiskCache, name: str) -> None:
    with pytest.raises(CommandError):
        cache.folder(name)


def test_a_blob_that_was_replaced_while_it_was_read_is_not_removed_for_its_predecessor(
    cache: DiskCache, tmp_path: Path
) -> None:
    files = fill(cache, {"a.json": b"right"})
    path = cache.place("lk-a", files, TEXTS) / "a.json"
    path.chmod(0o644)
    path.write_bytes(b"wrong")

    def replace(_: int) -> None:
        assert cache.drop_if_corrupted(files[0].sha256)
        fill(cache, {"a.json": b"right"})
        cache.place("lk-a", files, TEXTS)

    assert not cache.drop_if_corrupted(files[0].sha256, after=replace)
    assert (tmp_path / "blobs" / files[0].sha256).read_bytes() == b"right"
    assert cache.incomplete() == ()


@pytest.mark.parametrize("number", [errno.EIO, errno.EUCLEAN])
def test_a_blob_that_the_disk_can_not_read_any_more_is_a_corrupted_one(cache: DiskCache, number: int) -> None:
    files = fill(cache, {"a.json": b"right"})
    cache.place("lk-a", files, TEXTS)

    def unreadable(_: int) -> None:
        raise OSError(number, "can't be read")

    assert cache.drop_if_corrupted(files[0].sha256, after=unreadable)
    assert cache.incomplete() == ("lk-a",)


def test_whoever_waits_for_another_ones_download_can_give_up(cache: DiskCache) -> None:
    def void() -> None:
        raise SupersededError("a newer command came")

    files = wanted({"a.json": b"same"})
    with cache.downloading(files), pytest.raises(SupersededError), cache.downloading(files, check=void):
        pytest.fail("it did not wait")
    with cache.downloading(files):
        assert cache.missing(files) == tuple(files)


def test_links_that_somebody_else_made_do_not_keep_a_blob(cache: DiskCache, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        files = fill(cache, {name: name.encode()})
        cache.place("lk-a", files, TEXTS)
        os.link(tmp_path / "blobs" / files[0].sha256, tmp_path / name)
    cache.delete("lk-a")
    assert blobs(tmp_path) == {sha256_of(b"a.json")}
    again = DiskCache(tmp_path)
    again.prepare()
    assert (blobs(tmp_path), again.used_bytes()) == (set(), 0)
