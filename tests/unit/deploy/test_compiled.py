from pathlib import Path

import pytest

from deploy import compiled


def test_every_module_that_is_compiled_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []

    def mypycify(given: list[str], **_options: object) -> list[object]:
        named.extend(path for path in given if not path.startswith("-"))
        return []

    monkeypatch.setenv("LOREKEEPER_COMPILED", "1")
    monkeypatch.setattr("mypyc.build.mypycify", mypycify)
    monkeypatch.setattr("setuptools.setup", lambda **_what: None)
    source = compiled.ROOT / "setup.py"
    exec(compile(source.read_text(), source, "exec"), {"__name__": "setup"})
    assert named
    assert all((compiled.ROOT / path).is_file() for path in named)


def test_a_build_of_these_sources_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_FOLDER", tmp_path)
    monkeypatch.setattr("subprocess.run", pytest.fail)
    (tmp_path / ".built").write_text(compiled._digest())
    assert compiled.compiled_gateway() == tmp_path / "lib"


def test_a_build_that_fails_says_why_and_leaves_nothing_to_be_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setup.py").write_text("raise SystemExit('no compiler')\n")
    (tmp_path / "requirements.txt").touch()
    monkeypatch.setattr(compiled, "ROOT", tmp_path)
    monkeypatch.setattr(compiled, "_FOLDER", tmp_path / "built")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no compiler"):
            compiled.compiled_gateway()
