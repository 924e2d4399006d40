from pathlib import Path

import pytest

from tests.unit.workers.node.kit import Clock, FullDisk
from workers.node.disk.tombstones import Tombstones


def test_a_name_is_due_when_its_grace_is_over(tmp_path: Path) -> None:
    clock = Clock()
    stones = Tombstones(tmp_path, clock=clock)
    stones.bury("lk-a", grace_s=10)
    assert stones.due() == ()
    clock.time += 10
    assert stones.due() == ("lk-a",)


def test_a_restart_goes_on_with_the_same_time(tmp_path: Path) -> None:
    clock = Clock()
    Tombstones(tmp_path, clock=clock).bury("lk-a", grace_s=10)
    clock.time += 10
    assert Tombstones(tmp_path, clock=clock).due() == ("lk-a",)


def test_a_later_time_is_not_shortened(tmp_path: Path) -> None:
    clock = Clock()
    stones = Tombstones(tmp_path, clock=clock)
    stones.bury("lk-a", grace_s=100)
    stones.bury("lk-a", grace_s=1)
    clock.time += 50
    assert stones.due() == ()


def test_a_lifted_name_is_not_due(tmp_path: Path) -> None:
    stones = Tombstones(tmp_path, clock=Clock())
    stones.bury("lk-a", grace_s=0)
    stones.lift("lk-a")
    stones.lift("lk-a")
    assert stones.names() == ()


def test_files_of_a_damaged_tombstone_stay(tmp_path: Path) -> None:
    stones = Tombstones(tmp_path, clock=Clock())
    (tmp_path / "lk-a.json").write_text("{")
    stones = Tombstones(tmp_path, clock=Clock())
    assert stones.due() == ()
    stones.bury("lk-a", grace_s=0)
    assert stones.due() == ("lk-a",)


def test_files_of_a_damaged_tombstone_may_be_read_for_the_grace(tmp_path: Path) -> None:
    """Nobody knows when they were unloaded; whoever is short of room must not take them from under an engine."""
    clock = Clock()
    stones = Tombstones(tmp_path, clock=clock)
    stones.make_whole((), grace_s=10)
    stones.bury("lk-a", grace_s=10)
    (tmp_path / "lk-a.json").write_text("{")
    stones = Tombstones(tmp_path, clock=clock)
    stones.make_whole(("lk-a", "lk-b"), grace_s=10)
    assert stones.may_be_read("lk-a")
    assert not stones.may_be_read("lk-b")
    clock.time += 11
    assert not stones.may_be_read("lk-a")
    assert stones.due() == ()


def test_files_that_are_spared_may_be_read_as_long_as_before_and_are_not_due(tmp_path: Path) -> None:
    clock = Clock()
    stones = Tombstones(tmp_path, clock=clock)
    stones.bury("lk-a", grace_s=10)
    stones.spare("lk-a")
    stones.spare("lk-unknown")
    assert Tombstones(tmp_path, clock=clock).may_be_read("lk-a")
    clock.time += 10
    assert stones.due() == ()
    assert not stones.may_be_read("lk-a")
    stones.forget_spared()
    assert list(tmp_path.iterdir()) == []


def test_an_unload_that_says_nothing_of_the_files_leaves_that_to_an_earlier_one(tmp_path: Path) -> None:
    clock = Clock()
    stones = Tombstones(tmp_path, clock=clock)
    stones.bury("lk-evicted", grace_s=1)
    stones.bury("lk-evicted", grace_s=5, delete=None)
    stones.bury("lk-other", grace_s=5, delete=None)
    clock.time += 5
    assert stones.due() == ("lk-evicted",)


def test_a_note_that_a_full_disk_has_no_room_for_holds_and_the_next_process_spares_everything_for_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, disk = Clock(), FullDisk()
    stones = Tombstones(tmp_path, clock=clock)
    stones.make_whole((), grace_s=10)
    disk.install(monkeypatch)
    disk.is_full = True
    stones.bury("lk-a", grace_s=10)
    assert stones.may_be_read("lk-a")
    for full in (True, False):
        disk.is_full = full
        after = Tombstones(tmp_path, clock=clock)
        assert not after.may_be_read("lk-a")
        after.make_whole(("lk-a", "lk-b"), grace_s=10)
        assert after.may_be_read("lk-a")
        assert after.may_be_read("lk-b")
    clock.time += 11
    assert after.due() == ()
    whole = Tombstones(tmp_path, clock=clock)
    whole.make_whole(("lk-c",), grace_s=10)
    assert not whole.may_be_read("lk-c")
