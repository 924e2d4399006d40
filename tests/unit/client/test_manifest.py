import hashlib
import os
from pathlib import Path

import pytest

from client.errors import FolderRefused
from client.manifest import read_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "adapter"
    (root / "nested").mkdir(parents=True)
    (root / "weights.safetensors").write_bytes(b"w" * 3_000_000)
    (root / "adapter_config.json").write_text("{}")
    (root / "nested" / "README.md").write_bytes(b"")
    return root


def test_files_are_listed_by_path_with_size_and_digest(folder: Path) -> None:
    declared = [file.declared for file in read_manifest(folder)]
    assert [file.path for file in declared] == ["adapter_config.json", "nested/README.md", "weights.safetensors"]
    assert [file.size for file in declared] == [2, 0, 3_000_000]
    assert declared[2].sha256 == hashlib.sha256(b"w" * 3_000_000).hexdigest()


def test_a_symlink_is_refused_by_name(folder: Path) -> None:
    (folder / "link.json").symlink_to("/etc/passwd")
    with pytest.raises(FolderRefused, match=r"link\.json is a symlink") as caught:
        read_manifest(folder)
    assert caught.value.path == "link.json"


def test_a_symlinked_folder_is_refused_and_not_entered(folder: Path, tmp_path: Path) -> None:
    (folder / "more").symlink_to(tmp_path)
    with pytest.raises(FolderRefused, match="more is a symlink"):
        read_manifest(folder)


@pytest.mark.parametrize("name", [".git", ".env", ".DS_Store"])
def test_a_hidden_name_is_refused_by_name(folder: Path, name: str) -> None:
    (folder / "nested" / name).mkdir()
    with pytest.raises(FolderRefused, match=f"nested/{name} is hidden"):
        read_manifest(folder)


def test_a_pipe_is_refused_without_being_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(FolderRefused, match="pipe isn't a plain file"):
        read_manifest(folder)


@pytest.mark.parametrize("name", ["line\nfeed", "back\\slash", "esc\x1b[31m"])
def test_a_name_with_odd_characters_is_refused_readably(folder: Path, name: str) -> None:
    (folder / name).write_text("x")
    with pytest.raises(FolderRefused) as caught:
        read_manifest(folder)
    assert str(caught.value).isprintable()


def test_an_empty_folder_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match="has no files"):
        read_manifest(tmp_path)
    with pytest.raises(FolderRefused, match="isn't a folder"):
        read_manifest(tmp_path / "missing")
