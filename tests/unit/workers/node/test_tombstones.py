from pathlib import Path

from tests.unit.workers.node.kit import Clock
from workers.node.tombstones import Tombstones


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
    assert stones.due() == ()
    stones.bury("lk-a", grace_s=0)
    assert stones.due() == ("lk-a",)
