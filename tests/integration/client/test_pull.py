import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from client import DigestMismatch, LorekeeperClient, PairRef, VersionRef
from tests.integration.client.fake_registry import FakeRegistry

REF = VersionRef("acme", "tone", "v1")
Run = Callable[..., Result]


@pytest.fixture
def approved(client: LorekeeperClient, folder: Path) -> VersionRef:
    client.push(folder, PairRef("acme", "tone"), base_revision="r1", name="v1")
    version = client.versions.wait(REF, sleep=lambda _seconds: None)
    client.versions.approve(REF, digest=version.root_digest or "")
    return REF


@pytest.fixture
def key(registry: FakeRegistry, tmp_path: Path) -> Path:
    path = tmp_path / "trusted.pem"
    path.write_text(registry.signer.public_pem())
    return path


def leftovers(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.endswith(".partial")]


def test_a_signed_version_is_pulled_whole_and_verifies(
    approved: VersionRef, run: Run, run_json: Callable[..., Any], folder: Path, tmp_path: Path, key: Path
) -> None:
    target = tmp_path / "new" / "pulled"
    done = run_json("pull", approved, target, "--key", key)
    assert (done["version"], done["verified"]) == (str(REF), True)
    names = {path.name for path in target.iterdir()}
    assert names == {path.name for path in folder.iterdir()} | {"model.sig", "release.intoto.json"}
    assert all((target / path.name).read_bytes() == path.read_bytes() for path in folder.iterdir())
    assert leftovers(target.parent) == []
    result = run("verify", target, "--key", key, "--expect", REF)
    assert result.exit_code == 0, result.output
    assert "is acme/tone@v1, complete and signed" in result.stdout
    assert run_json("verify", target, "--key", key)["claims"]["rank"] == 8


def test_a_changed_byte_an_extra_file_and_a_missing_one_are_refused(
    approved: VersionRef, run: Run, tmp_path: Path, key: Path
) -> None:
    for index, (change, word) in enumerate([(_flip, "adapter_config.json"), (_add, "extra"), (_remove, "README.md")]):
        target = tmp_path / f"pulled{index}"
        assert run("pull", approved, target).exit_code == 0
        change(target)
        result = run("verify", target, "--key", key)
        assert result.exit_code == 1
        assert word in result.stderr


def test_another_signed_version_in_its_place_is_refused(
    approved: VersionRef, run: Run, tmp_path: Path, key: Path
) -> None:
    run("pull", approved, tmp_path / "pulled")
    result = run("verify", tmp_path / "pulled", "--key", key, "--expect", "acme/tone@v2")
    assert result.exit_code == 1
    assert "isn't the version you asked for" in result.stderr


def test_a_foreign_key_and_a_file_that_is_no_key_are_refused(
    approved: VersionRef, run: Run, tmp_path: Path, registry: FakeRegistry
) -> None:
    run("pull", approved, tmp_path / "pulled")
    (tmp_path / "no.pem").write_text("hello")
    result = run("verify", tmp_path / "pulled", "--key", tmp_path / "no.pem")
    assert result.exit_code == 1
    assert "isn't trustworthy" in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_without_signature_says_what_to_do(run: Run, folder: Path, key: Path) -> None:
    result = run("verify", folder, "--key", key)
    assert result.exit_code == 1
    assert "model.sig can't be read" in result.stderr


def test_tampered_bytes_leave_nothing_behind(
    approved: VersionRef, registry: FakeRegistry, client: LorekeeperClient, tmp_path: Path
) -> None:
    digest = next(file["sha256"] for file in registry.versions["v1"]["files"] if "safetensors" in file["path"])
    registry.tamper_with = digest
    with pytest.raises(DigestMismatch, match="adapter_model"):
        client.pull(approved, tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()
    assert leftovers(tmp_path) == []


def test_an_unsigned_version_is_refused_and_leaves_nothing_behind(
    run: Run, client: LorekeeperClient, folder: Path, tmp_path: Path
) -> None:
    client.push(folder, PairRef("acme", "tone"), base_revision="r1", name="v1")
    result = run("pull", REF, tmp_path / "pulled")
    assert result.exit_code == 1
    assert "isn't signed yet" in result.stderr
    assert not (tmp_path / "pulled").exists()


def test_a_folder_that_has_something_in_it_is_not_touched(
    approved: VersionRef, registry: FakeRegistry, run: Run, folder: Path
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    asked = len(registry.seen)
    result = run("pull", approved, folder)
    assert result.exit_code == 1
    assert "isn't an empty folder" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    assert len(registry.seen) == asked


def _flip(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"r": 9}')


def _add(folder: Path) -> None:
    (folder / "extra.bin").write_bytes(b"x")


def _remove(folder: Path) -> None:
    (folder / "README.md").unlink()


def test_a_folder_that_cannot_be_renamed_is_told_by_its_real_reason(
    approved: VersionRef, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(self: Path, target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(self))

    monkeypatch.setattr(Path, "rename", rename)
    result = run("pull", approved, tmp_path / "pulled")
    assert result.exit_code == 1
    assert "Input/output error" in result.stderr
    assert leftovers(tmp_path) == []
