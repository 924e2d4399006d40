from pathlib import Path

import pytest

from tests.unit.workers.node.kit import FullDisk
from workers.node.ledger import Ledger, Order
from workers.node.reports import Outcome


def test_only_higher_generations_are_new(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.accept("lk-a", generation=5, act="warm") is Order.NEW
    assert ledger.accept("lk-a", generation=5, act="warm") is Order.AGAIN
    assert ledger.accept("lk-a", generation=4, act="evict") is Order.STALE
    assert ledger.accept("lk-a", generation=5, act="evict") is Order.STALE
    assert ledger.accept("lk-a", generation=6, act="evict") is Order.NEW
    assert ledger.accept("lk-b", generation=1, act="warm") is Order.NEW


def test_it_survives_a_restart_with_the_outcome(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.accept("lk-a", generation=5, act="warm")
    outcome = Outcome("lk-a", 5, "loaded", timings_ms={"load": 12}, boot_id="boot-1")
    ledger.finish(outcome)
    entry = Ledger(tmp_path).entry("lk-a")
    assert entry is not None
    assert (entry.generation, entry.act, entry.outcome) == (5, "warm", outcome)


def test_an_older_end_does_not_overwrite_a_newer_command(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.accept("lk-a", generation=6, act="evict")
    ledger.finish(Outcome("lk-a", 5, "loaded"))
    entry = ledger.entry("lk-a")
    assert entry is not None
    assert entry.outcome is None


def test_comparing_notes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.compare("lk-a", generation=9, act="warm") is Order.NEW
    assert ledger.entry("lk-a") is None


def test_a_damaged_file_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lk-a.json").write_text('{"generation": ')
    assert Ledger(tmp_path).accept("lk-a", generation=1, act="warm") is Order.NEW
    assert "damaged" in caplog.text


def test_what_a_full_disk_has_no_room_for_is_known_until_the_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, ledger = FullDisk(), Ledger(tmp_path, may_forget=True)
    disk.install(monkeypatch)
    ledger.accept("lk-a", generation=5, act="warm")
    disk.is_full = True
    assert ledger.accept("lk-a", generation=6, act="evict") is Order.NEW
    assert ledger.accept("lk-a", generation=6, act="evict") is Order.AGAIN
    assert ledger.accept("lk-a", generation=5, act="warm") is Order.STALE
    assert Ledger(tmp_path).accept("lk-a", generation=5, act="warm") is Order.AGAIN


def test_what_found_no_room_is_written_with_the_next_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, ledger = FullDisk(is_full=True), Ledger(tmp_path, may_forget=True)
    disk.install(monkeypatch)
    ledger.accept("lk-a", generation=6, act="evict")
    disk.is_full = False
    ledger.finish(Outcome("lk-a", 6, "evicted"))
    for found in (ledger, Ledger(tmp_path)):
        entry = found.entry("lk-a")
        assert entry is not None
        assert entry.outcome == Outcome("lk-a", 6, "evicted")


def test_where_nothing_may_be_forgotten_a_full_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FullDisk(is_full=True).install(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        Ledger(tmp_path).accept("lk-a", generation=1, act="warm")
