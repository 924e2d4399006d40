from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.demo.made_folders import hash_of, is_current, make_once, stamp_path


def write(text: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "content").write_text(text)

    return make


def test_a_folder_is_made_once_for_the_same_inputs(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "made"
    assert make_once(folder, "hash", write("first"))
    assert not make_once(folder, "hash", write("second"))
    assert (folder / "content").read_text() == "first"


def test_other_inputs_replace_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    make_once(folder, "old", write("old"))
    assert make_once(folder, "new", write("new"))
    assert (folder / "content").read_text() == "new"
    assert is_current(folder, "new")
    assert not is_current(folder, "old")


def test_a_failure_keeps_the_older_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    make_once(folder, "old", write("old"))

    def fail(building: Path) -> None:
        (building / "half").write_text("half")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        make_once(folder, "new", fail)
    assert (folder / "content").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "made.stamp"]


def test_a_folder_without_its_stamp_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    make_once(folder, "hash", write("first"))
    stamp_path(folder).unlink()
    assert make_once(folder, "hash", write("second"))


def test_a_stamp_without_its_folder_is_not_current(tmp_path: Path) -> None:
    stamp_path(tmp_path / "made").write_text("hash\n")
    assert not is_current(tmp_path / "made", "hash")


def test_the_border_between_two_inputs_counts() -> None:
    assert hash_of("ab", "c") != hash_of("a", "bc")
    assert hash_of("a", b"b") == hash_of(b"a", "b")
