from pathlib import Path

import pytest

from deploy import compiled


def a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, setup: str) -> Path:
    """A tree to build from in place of this one."""
    root = tmp_path / "root"
    (root / "gateway").mkdir(parents=True)
    (root / "setup.py").write_text(setup)
    (root / "requirements.txt").touch()
    monkeypatch.setattr(compiled, "ROOT", root)
    monkeypatch.setattr(compiled, "_FOLDER", tmp_path / "built")
    return root


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


def test_what_is_compiled_already_is_not_compiled_again_but_all_else_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = a_tree(tmp_path, monkeypatch, setup="")
    stale = [compiled._FOLDER / name for name in ("tests/test_gone.py", "registry/deep/gone.py", "gone.py")]
    built = [compiled._FOLDER / name for name in ("gateway/a.so", "0a1b__mypyc.so")]
    for path in (*stale, *built):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (root / "manage.py").touch()
    (compiled._FOLDER / ".built").write_text(compiled._digest())
    monkeypatch.setattr("subprocess.run", pytest.fail)
    tree = compiled.compiled_gateway()
    assert (tree / "manage.py").exists()
    assert not any(path.exists() for path in stale)
    assert all(path.exists() for path in built)


def test_a_source_that_changes_makes_a_build_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_tree(tmp_path, monkeypatch, setup="import os\nos.mkdir('build')\nopen('made', 'w')\n")
    made = compiled.compiled_gateway() / "made"
    made.unlink()
    compiled.compiled_gateway()
    assert not made.exists()
    (root / "gateway" / "a.py").write_text("a = 1\n")
    compiled.compiled_gateway()
    assert made.exists()


def test_a_build_that_fails_says_why_and_leaves_nothing_to_be_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_tree(tmp_path, monkeypatch, setup="raise SystemExit('no compiler')\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no compiler"):
            compiled.compiled_gateway()
