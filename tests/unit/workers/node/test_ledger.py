from pathlib import Path

import pytest

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
    assert ledger.accepted == 0


def test_a_damaged_file_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lk-a.json").write_text('{"generation": ')
    assert Ledger(tmp_path).accept("lk-a", generation=1, act="warm") is Order.NEW
    assert "damaged" in caplog.text
