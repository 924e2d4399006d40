import os
import re
import socket
from pathlib import Path

import pytest

from tests.unit.workers.validation.adapters import Upload, pairs, safetensors
from workers.validation import DeclaredFile, Limits, Report, Verdict


def codes(report: Report, verdict: Verdict = Verdict.FAIL) -> set[str]:
    return {f"{check.name}.{check.code}" for check in report.checks if check.verdict is verdict}


def test_a_sound_adapter_is_accepted_with_all_checks_passed(good: Upload) -> None:
    report = good.check(declared=good.declared())
    assert report.verdict == "accept"
    assert [check.name for check in report.checks] == [
        "files", "companions", "structure", "config", "compatibility", "numerics", "engines", "cost",
    ]  # fmt: skip
    assert [file.path for file in report.facts.files] == ["adapter_config.json", "adapter_model.safetensors"]


def test_documents_beside_the_two_files_are_kept(good: Upload) -> None:
    good.file("README.md").file("LICENSE")
    report = good.check()
    assert report.verdict == "accept"
    assert {file.path for file in report.facts.files} >= {"README.md", "LICENSE"}


def test_an_undeclared_file_is_refused_by_name(good: Upload) -> None:
    declared = good.declared()
    good.file("README.md")
    report = good.check(declared=declared)
    assert "files.extra" in codes(report)
    assert "README.md" in report.reasons[0]


def test_a_declared_file_that_is_missing_is_refused_by_name(good: Upload) -> None:
    report = good.check(declared=(*good.declared(), DeclaredFile("README.md", 1, "0" * 64)))
    assert "README.md is declared" in report.reasons[0]


@pytest.mark.parametrize(("change", "word"), [(-1, "oversized"), (1, "truncated")])
def test_a_file_of_another_size_than_declared_is_refused(good: Upload, change: int, word: str) -> None:
    declared = tuple(DeclaredFile(file.path, file.size + change, file.sha256) for file in good.declared())
    report = good.check(declared=declared)
    assert "files.size" in codes(report)
    assert word in report.reasons[0]


def test_a_changed_byte_is_refused_by_its_digest(good: Upload) -> None:
    declared = good.declared()
    path = good.folder / "adapter_model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    report = good.check(declared=declared)
    assert codes(report) == {"files.digest"}
    assert "adapter_model.safetensors" in report.reasons[0]


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_each_of_the_two_files_must_be_there(good: Upload, name: str) -> None:
    (good.folder / name).unlink()
    report = good.check()
    assert report.verdict == "reject"
    assert report.reasons[0].startswith(f"{name} is missing")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("adapter_model.bin", "pickle"),
        ("adapter.gguf", "GGUF"),
        ("adapters.safetensors", "MLX"),
        ("adapter_model-00001-of-00002.safetensors", "shard"),
        ("checkpoint-9/adapter_model.safetensors", "nested"),
        ("Adapter_Model.safetensors", "lower case"),
        ("upload.zip", "archive"),
    ],
)
def test_a_missing_weight_file_is_explained_by_what_is_there_instead(upload: Upload, name: str, hint: str) -> None:
    report = upload.config().file(name).check()
    assert report.verdict == "reject"
    assert hint in report.reasons[0]


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "nowhere"])
def test_a_symbolic_link_is_refused_and_never_followed(good: Upload, target: str) -> None:
    (good.folder / "README.md").symlink_to(target)
    report = good.check()
    assert codes(report) == {"files.link"}


def test_linked_weights_are_refused_unread(upload: Upload, tmp_path: Path) -> None:
    elsewhere = tmp_path / "blob"
    elsewhere.write_bytes(safetensors(pairs()))
    upload.config()
    (upload.folder / "adapter_model.safetensors").symlink_to(elsewhere)
    report = upload.check()
    assert codes(report) == {"files.link"}
    assert report.facts.rank is None


def test_a_link_to_the_folder_itself_is_no_folder(good: Upload, tmp_path: Path) -> None:
    link = Upload(tmp_path / "other")
    link.folder.rmdir()
    link.folder.symlink_to(good.folder)
    with pytest.raises(NotADirectoryError):
        link.check()


def test_pipes_and_sockets_are_named_and_not_opened(upload: Upload, monkeypatch: pytest.MonkeyPatch) -> None:
    upload.config()
    os.mkfifo(upload.folder / "adapter_model.safetensors")
    monkeypatch.chdir(upload.folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        report = upload.check()
    assert codes(report) == {"files.special"}


def test_a_huge_sparse_file_is_refused_unread(good: Upload) -> None:
    os.truncate(good.folder / "adapter_model.safetensors", 1 << 40)
    report = good.check()
    assert "files.too_large" in codes(report)
    assert "size" in report.reasons[0]


def test_a_huge_declared_document_is_refused_unread(good: Upload) -> None:
    good.file("README.md")
    os.truncate(good.folder / "README.md", 1 << 36)
    parts = tuple(DeclaredFile(file.path, file.size, file.sha256) for file in good.check().facts.files)
    report = good.check(declared=(DeclaredFile("README.md", 1 << 36, "0" * 64), *parts))
    assert codes(report) == {"files.too_large"}


@pytest.mark.parametrize("name", [".git/config", "a\u202eb.json", "sub/nul.json", "a\nb.md", "CON.txt"])
def test_a_dangerous_path_is_refused(good: Upload, name: str) -> None:
    report = good.file(name).check()
    assert "files.path" in codes(report)
    assert all(reason.isprintable() for reason in report.reasons)


def test_a_name_that_is_no_unicode_is_refused_without_harm_to_the_report(good: Upload) -> None:
    (good.folder / os.fsdecode(b"\xff.md")).write_bytes(b"x")
    report = good.check()
    assert "files.path" in codes(report)
    assert re.fullmatch(r"[0-9a-f]{64}", report.digest)


def test_names_that_differ_only_in_case_are_refused(good: Upload) -> None:
    report = good.file("README.md").file("readme.md").check()
    assert codes(report) == {"files.clash"}


def test_leftovers_of_training_are_named_and_left_out(good: Upload) -> None:
    good.file("optimizer.pt").file("trainer_state.json").file("checkpoint-1/adapter_model.safetensors")
    report = good.check()
    assert report.verdict == "warn"
    assert "optimizer.pt" in report.reasons[0]
    assert set(report.facts.unused_files) == {
        "optimizer.pt", "trainer_state.json", "checkpoint-1/adapter_model.safetensors",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["optimizer.pt", "adapter_model.bin", "modeling.py", "adapter.gguf", "a.zip"])
def test_a_declared_pickle_or_program_is_refused(good: Upload, name: str) -> None:
    good.file(name)
    report = good.check(declared=good.declared())
    assert codes(report) == {"files.kind"}
    assert name in report.reasons[0]


def test_a_folder_of_very_many_files_is_not_walked_to_its_end(good: Upload) -> None:
    for number in range(30):
        good.file(f"more/{number}.json")
    report = good.check(limits=Limits(max_rank=16, max_files=20))
    assert "files.too_many" in codes(report)


def test_a_very_deep_folder_is_not_walked_to_its_end(good: Upload) -> None:
    good.file("/".join("abcdefghijklmnop") + "/x.json")
    assert "files.too_many" in codes(good.check())


def test_what_every_clone_of_a_repository_has_is_left_out_without_a_word(good: Upload) -> None:
    report = good.file(".gitattributes", "*.safetensors filter=lfs").check()
    assert report.verdict == "accept"
    assert report.facts.unused_files == (".gitattributes",)
