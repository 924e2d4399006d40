import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.workers.validation.adapters import Upload, pairs
from workers.validation import Limits, Verdict
from workers.validation.archive import unpacked

NAMES = ("adapter_config.json", "adapter_model.safetensors")
Odd = tuple[str | zipfile.ZipInfo, bytes]


def codes(upload: Upload, limits: Limits | None = None) -> set[str]:
    report = upload.check(limits=limits or Limits(max_rank=16))
    return {check.code for check in report.checks if check.name == "files" and check.verdict is Verdict.FAIL}


def zipped(upload: Upload, *odd: Odd, names: tuple[str, ...] = NAMES) -> Upload:
    """Put the adapter's files and odd members into upload.zip, which is then all there is."""
    with zipfile.ZipFile(upload.folder / "upload.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(upload.folder / name, name)
        for entry, content in odd:
            archive.writestr(entry, content)
    for name in NAMES:
        (upload.folder / name).unlink(missing_ok=True)
    return upload


def tarred(upload: Upload, *odd: tuple[tarfile.TarInfo, bytes], name: str = "upload.tar") -> Upload:
    with tarfile.open(upload.folder / name, "w:gz" if name.endswith("gz") else "w") as archive:
        for path in NAMES:
            archive.add(upload.folder / path, f"./{path}")
        for info, content in odd:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    for path in NAMES:
        (upload.folder / path).unlink()
    return upload


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    "pack",
    [
        zipped,
        tarred,
        lambda upload: tarred(upload, name="upload.tar.gz"),
        lambda upload: tarred(upload, name="upload.tgz"),
        lambda upload: zipped(upload, ("README.md", b"# adapter")),
        lambda upload: zipped(upload).file("README.md", "# adapter"),
    ],
)
def test_an_archive_of_a_sound_adapter_is_accepted(good: Upload, pack: Callable[[Upload], Upload]) -> None:
    report = pack(good).check()
    assert report.verdict == "accept", report.reasons
    assert {file.path for file in report.facts.files} >= set(NAMES)


def test_what_is_inside_is_checked_like_a_folder(upload: Upload) -> None:
    zipped(upload.weights(pairs()).config(use_dora=True))
    assert any("DoRA" in reason for reason in upload.check().reasons)


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        (("../../outside.txt", b"x"), "archive_path"),
        (("/etc/passwd", b"x"), "archive_path"),
        (("a\\..\\b.txt", b"x"), "archive_path"),
        (("C:evil.txt", b"x"), "archive_path"),
        (("a\u202eb.txt", b"x"), "archive_path"),
        (("CON.txt", b"x"), "archive_path"),
        ((zip_entry("link", stat.S_IFLNK | 0o777), b"/etc/passwd"), "archive_link"),
        ((zip_entry("pipe", stat.S_IFIFO | 0o644), b""), "archive_link"),
        (("ADAPTER_CONFIG.json", b"{}"), "archive_duplicate"),
        (("zeros.txt", bytes(64 << 20)), "archive_size"),
    ],
)
def test_a_hostile_zip_is_refused_before_anything_is_written(good: Upload, odd: Odd, code: str, tmp_path: Path) -> None:
    zipped(good, odd)
    assert codes(good) == {code}
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        (tar_entry("../outside.txt"), "archive_path"),
        (tar_entry("/etc/passwd"), "archive_path"),
        (tar_entry("link", tarfile.SYMTYPE, "/etc/passwd"), "archive_link"),
        (tar_entry("hard", tarfile.LNKTYPE, "adapter_config.json"), "archive_link"),
        (tar_entry("device", tarfile.CHRTYPE), "archive_link"),
        (tar_entry("adapter_config.json"), "archive_duplicate"),
    ],
)
def test_a_hostile_tar_is_refused(good: Upload, odd: tarfile.TarInfo, code: str) -> None:
    assert codes(tarred(good, (odd, b""))) == {code}


@pytest.mark.parametrize("odd", [(("notes", b"x"), ("notes/a.txt", b"x")), (("notes/a.txt", b"x"), ("notes", b"x"))])
def test_a_file_where_another_path_needs_a_folder_is_refused(good: Upload, odd: tuple[Odd, Odd]) -> None:
    assert codes(zipped(good, *odd)) == {"archive_duplicate"}


def test_a_bomb_whose_sizes_lie_is_stopped_while_it_unpacks(good: Upload) -> None:
    zipped(good, ("zeros.txt", bytes(64 << 20)))
    path = good.folder / "upload.zip"
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", 64 << 20), struct.pack("<I", 100)))
    assert codes(good) <= {"archive_size", "archive_unreadable"}
    assert good.check().verdict == "reject"


def test_a_packed_tar_of_zeros_is_refused(good: Upload) -> None:
    tarred(good, (tar_entry("zeros.txt"), bytes(64 << 20)), name="upload.tar.gz")
    assert codes(good) == {"archive_size"}


def test_a_tar_header_that_would_fill_the_memory_is_refused(good: Upload) -> None:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"comment": "x" * (9 << 20)}
    tarred(good, (info, b""))
    assert codes(good) == {"archive_unreadable"}


def test_too_many_entries_are_refused_unopened(good: Upload) -> None:
    zipped(good, *((f"{number}.txt", b"") for number in range(50)))
    assert codes(good, Limits(max_rank=16, max_files=20)) == {"archive_too_many"}


def test_more_than_the_registry_takes_is_refused(good: Upload) -> None:
    zipped(good)
    assert codes(good, Limits(max_rank=16, max_weights_bytes=1000, max_file_bytes=1000)) == {"archive_size"}


def test_an_encrypted_or_rarely_packed_member_is_refused(good: Upload) -> None:
    with zipfile.ZipFile(good.folder / "upload.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("adapter_config.json", b"{}")
    for name in NAMES:
        (good.folder / name).unlink()
    assert codes(good) == {"archive_sealed"}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"\x1f\x8b\x08 no gzip", b"x" * 2000])
def test_what_is_no_archive_is_refused(upload: Upload, content: bytes) -> None:
    assert codes(upload.file("upload.zip", content)) == {"archive_unreadable"}


def test_a_damaged_member_is_refused(good: Upload) -> None:
    path = zipped(good).folder / "upload.zip"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert codes(good) == {"archive_unreadable"}


def test_an_archive_in_an_archive_stays_packed(good: Upload) -> None:
    inner = zipped(good).folder / "upload.zip"
    content = inner.read_bytes()
    inner.unlink()
    zipped(good, ("inner.zip", content), names=())
    assert codes(good) == {"missing"}
    assert "archive" in good.check().reasons[0]


def test_everything_one_folder_down_in_an_archive_is_missing_at_the_top(good: Upload) -> None:
    with zipfile.ZipFile(good.folder / "upload.zip", "w") as archive:
        for name in NAMES:
            archive.write(good.folder / name, f"run/{name}")
            (good.folder / name).unlink()
    assert codes(good) == {"missing"}
    assert "run/adapter_config.json" in good.check().reasons[0]


def test_archives_beside_the_adapter_are_left_alone(good: Upload) -> None:
    report = good.file("more.zip", b"no zip").check()
    assert report.verdict == "warn"
    assert "more.zip" in report.reasons[0]


def test_a_declared_upload_is_never_unpacked(good: Upload) -> None:
    zipped(good)
    report = good.check(declared=good.declared())
    assert {"missing", "kind"} <= {check.code for check in report.checks if check.name == "files"}


def test_nothing_of_the_archive_is_left_behind(good: Upload) -> None:
    zipped(good)
    with unpacked(good.folder, Limits()) as found:
        assert (found.folder / NAMES[0]).is_file()
    assert not found.folder.exists()
