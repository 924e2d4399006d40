from pathlib import Path

import pytest

from registry.reports import ProbeReference
from workers.node.health.references import References

REFERENCE = ProbeReference("a text", base=(-1.0, -2.0), adapter=(-1.5, -2.0))


def test_a_reference_outlives_a_restart(tmp_path: Path) -> None:
    References(tmp_path).keep("lk-a", REFERENCE)
    assert References(tmp_path).of("lk-a") == REFERENCE
    assert References(tmp_path).of("lk-b") is None


def test_a_version_without_one_forgets_an_earlier_one(tmp_path: Path) -> None:
    references = References(tmp_path)
    references.keep("lk-a", REFERENCE)
    references.keep("lk-a", None)
    assert references.of("lk-a") is None
    references.forget("lk-a")


def test_a_damaged_one_is_as_good_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lk-a.json").write_text('{"prompt": ""}')
    assert References(tmp_path).of("lk-a") is None
    assert "damaged" in caplog.text


def test_a_full_disk_only_makes_a_later_check_weaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    references = References(tmp_path)
    monkeypatch.setattr(Path, "write_text", full)
    references.keep("lk-a", ProbeReference("a text", base=(-1.0,), adapter=(-2.0,)))
    assert references.of("lk-a") is None
