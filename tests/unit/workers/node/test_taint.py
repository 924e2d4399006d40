from pathlib import Path

import pytest

from workers.node.taint import TaintMark


def test_a_mark_belongs_to_one_life_of_the_engine(tmp_path: Path) -> None:
    mark = TaintMark(tmp_path / "taint.json")
    mark.mark(boot_id="boot-1", reason="NaN", poisoned=True)
    assert mark.poison("boot-1") == "NaN"
    assert mark.poison("boot-2") is None


def test_a_mark_survives_a_restart_of_the_agent(tmp_path: Path) -> None:
    TaintMark(tmp_path / "taint.json").mark(boot_id="boot-1", reason="NaN", poisoned=True)
    assert TaintMark(tmp_path / "taint.json").poison("boot-1") == "NaN"


def test_remains_in_a_slot_are_no_poison_and_never_hide_it(tmp_path: Path) -> None:
    mark = TaintMark(tmp_path / "taint.json")
    mark.mark(boot_id="boot-1", reason="shapes", poisoned=False)
    assert mark.poison("boot-1") is None
    assert mark.of("boot-1") is not None
    mark.mark(boot_id="boot-1", reason="NaN", poisoned=True)
    mark.mark(boot_id="boot-1", reason="shapes", poisoned=False)
    assert mark.poison("boot-1") == "NaN"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot_id": "boot-1"}'])
def test_a_damaged_mark_does_not_keep_the_agent_from_starting(tmp_path: Path, text: str) -> None:
    (tmp_path / "taint.json").write_text(text)
    mark = TaintMark(tmp_path / "taint.json")
    assert mark.of("boot-1") is None
    mark.mark(boot_id="boot-1", reason="NaN", poisoned=True)
    assert TaintMark(tmp_path / "taint.json").poison("boot-1") == "NaN"


def test_a_full_disk_does_not_hide_the_poison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workers.node.taint.write_json", full)
    mark = TaintMark(tmp_path / "taint.json")
    mark.mark(boot_id="boot-1", reason="NaN", poisoned=True)
    assert mark.poison("boot-1") == "NaN"
