from pathlib import Path
from threading import Event

import pytest

from tests.unit.workers.node.kit import Clock, MemoryRestarter
from workers.node.errors import RestartError
from workers.node.health.recycle import AGAIN_S, PAUSE_S, Recycler


@pytest.fixture
def restarter() -> MemoryRestarter:
    return MemoryRestarter()


def make(tmp_path: Path, restarter: MemoryRestarter, clock: Clock) -> Recycler:
    return Recycler(restarter, tmp_path / "recycled.json", clock=clock)


def test_the_engine_is_restarted_when_its_life_is_the_one_that_is_to_end(
    tmp_path: Path, restarter: MemoryRestarter
) -> None:
    recycler = make(tmp_path, restarter, Clock())
    assert recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    assert restarter.calls == 1
    assert recycler.is_restarting("boot-1")
    assert not recycler.is_restarting("boot-2")


@pytest.mark.parametrize("wanted", [None, "boot-0", 1, ""])
def test_another_life_goes_on(tmp_path: Path, restarter: MemoryRestarter, wanted: object) -> None:
    assert not make(tmp_path, restarter, Clock()).ask(wanted, boot_id="boot-1")
    assert restarter.calls == 0


def test_one_life_is_ended_once_also_after_a_restart_of_the_agent(tmp_path: Path, restarter: MemoryRestarter) -> None:
    clock = Clock()
    recycler = make(tmp_path, restarter, clock)
    assert recycler.ask("boot-1", boot_id="boot-1")
    assert not recycler.ask("boot-1", boot_id="boot-1")
    assert not make(tmp_path, restarter, clock).ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    assert restarter.calls == 1


def test_a_restart_that_did_nothing_is_tried_again_later(
    tmp_path: Path, restarter: MemoryRestarter, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    restarter.error = RestartError("exit status 1")
    recycler = make(tmp_path, restarter, clock)
    recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    assert "could not be restarted" in caplog.text
    clock.time += AGAIN_S
    assert not recycler.is_restarting("boot-1")
    assert recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    assert restarter.calls == 2


def test_without_a_way_nothing_is_restarted(tmp_path: Path, restarter: MemoryRestarter) -> None:
    restarter.available = False
    recycler = make(tmp_path, restarter, Clock())
    assert not recycler.available
    assert not recycler.ask("boot-1", boot_id="boot-1")


def test_a_full_disk_does_not_keep_a_poisoned_engine_alive(
    tmp_path: Path, restarter: MemoryRestarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workers.node.health.recycle.write_json", full)
    recycler = make(tmp_path, restarter, Clock())
    assert recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    assert restarter.calls == 1


def test_a_damaged_note_is_as_good_as_none(tmp_path: Path, restarter: MemoryRestarter) -> None:
    (tmp_path / "recycled.json").write_text("{")
    recycler = make(tmp_path, restarter, Clock())
    assert recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)


def test_the_next_life_is_not_ended_at_once_whatever_web_asks(tmp_path: Path, restarter: MemoryRestarter) -> None:
    clock = Clock()
    recycler = make(tmp_path, restarter, clock)
    assert recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    clock.time += PAUSE_S - 1
    assert not recycler.ask("boot-2", boot_id="boot-2")
    clock.time += 1
    assert recycler.ask("boot-2", boot_id="boot-2")
    recycler.join(5)
    assert restarter.calls == 2


def test_a_clock_that_was_set_back_does_not_keep_the_engine_from_being_restarted(
    tmp_path: Path, restarter: MemoryRestarter
) -> None:
    clock = Clock()
    recycler = make(tmp_path, restarter, clock)
    recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)
    clock.time -= 86_400
    assert not recycler.is_restarting("boot-1")
    assert recycler.ask("boot-1", boot_id="boot-1")
    recycler.join(5)


def test_one_restart_at_a_time(tmp_path: Path) -> None:
    clock, go = Clock(), Event()

    class Slow(MemoryRestarter):
        def restart(self) -> None:
            super().restart()
            go.wait(5)

    restarter = Slow()
    recycler = make(tmp_path, restarter, clock)
    assert recycler.ask("boot-1", boot_id="boot-1")
    clock.time += AGAIN_S
    assert not recycler.ask("boot-1", boot_id="boot-1")
    assert recycler.is_restarting("boot-1")
    go.set()
    recycler.join(5)
    assert restarter.calls == 1
