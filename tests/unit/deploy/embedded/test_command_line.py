from pathlib import Path

import pytest

from deploy.embedded.__main__ import main


def test_half_an_engine_is_refused_with_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["up", "--data", str(tmp_path), "--engine-python", "/python", "--base-model", "smollm2"])
    assert stopped.value.code == 2
    assert "an engine also needs --engine-model, --base-revision" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_stopping_where_nothing_runs_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down", "--data", str(tmp_path)]) == 0
    assert "no stack runs in" in capsys.readouterr().out


def test_restarting_a_process_where_nothing_runs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restart", "engine", "--data", str(tmp_path)]) == 1
    assert "no stack runs in" in capsys.readouterr().err


def test_a_stack_that_stops_just_before_it_is_asked_to_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = iter([2**22 + 1, None])  # no process has that pid
    monkeypatch.setattr("deploy.embedded.__main__.holder_of", lambda _lock: next(holders))
    assert main(["down", "--data", str(tmp_path)]) == 0
