import hashlib
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.errors import (
    DigestMismatch,
    ExtraFile,
    FileMismatch,
    MissingFile,
    NameMismatch,
    UnsafeFile,
)
from registry.signing.folder import read_file
from registry.signing.local_key import LocalKeySigner
from registry.signing.verify import TrustedKeys, verify_folder
from tests.factories.signed_folders import read_folder

CONTENTS = {"adapter_config.json": b'{"r": 8}', "adapter_model.safetensors": b"weights", "nested/notes.md": b""}
MakeClaims = Callable[..., ReleaseClaims]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _write(tmp_path / "v1", CONTENTS)


@pytest.fixture
def signatures(folder: Path, signer: LocalKeySigner, make_claims: MakeClaims) -> tuple[str, str]:
    return _sign(folder, signer, make_claims)


def _write(folder: Path, contents: dict[str, bytes]) -> Path:
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def _sign(folder: Path, signer: LocalKeySigner, make_claims: MakeClaims, **claims: object) -> tuple[str, str]:
    files = read_folder(folder)
    return sign_files(signer, files), sign_release(signer, make_claims(files, **claims), files)


def test_the_signed_folder_is_accepted_and_tells_what_it_is(
    folder: Path, signatures: tuple[str, str], keys: TrustedKeys
) -> None:
    assert verify_folder(folder, *signatures, keys).adapter == "support-tone"


def test_the_signatures_may_lie_beside_the_files(folder: Path, signatures: tuple[str, str], keys: TrustedKeys) -> None:
    for name, text in zip(("model.sig", "release.intoto.json"), signatures, strict=True):
        (folder / name).write_text(text)
    verify_folder(folder, *signatures, keys)


def _change_byte(folder: Path) -> None:
    (folder / "adapter_model.safetensors").write_bytes(b"weightz")


def _grow(folder: Path) -> None:
    (folder / "nested/notes.md").write_bytes(b"x")


def _truncate(folder: Path) -> None:
    (folder / "adapter_config.json").write_bytes(b"")


def _remove(folder: Path) -> None:
    (folder / "adapter_config.json").unlink()


def _rename(folder: Path) -> None:
    (folder / "adapter_config.json").rename(folder / "config.json")


def _move(folder: Path) -> None:
    (folder / "adapter_config.json").rename(folder / "nested/adapter_config.json")


def _add(folder: Path) -> None:
    (folder / "extra.json").write_bytes(b"{}")


def _add_hidden(folder: Path) -> None:
    (folder / ".gitignore").write_bytes(b"")


def _nest_signature(folder: Path) -> None:
    (folder / "nested/model.sig").write_bytes(b"")


def _link_file(folder: Path) -> None:
    (folder / "adapter_config.json").rename(folder.parent / "aside.json")
    (folder / "adapter_config.json").symlink_to(folder.parent / "aside.json")


def _link_folder(folder: Path) -> None:
    (folder / "nested").rename(folder.parent / "aside")
    (folder / "nested").symlink_to(folder.parent / "aside")


def _link_signature(folder: Path) -> None:
    (folder / "model.sig").symlink_to("adapter_config.json")


def _pipe(folder: Path) -> None:
    (folder / "adapter_config.json").unlink()
    os.mkfifo(folder / "adapter_config.json")


def _swap(folder: Path) -> None:
    (folder / "adapter_config.json").write_bytes(CONTENTS["adapter_model.safetensors"])
    (folder / "adapter_model.safetensors").write_bytes(CONTENTS["adapter_config.json"])


TAMPERING: dict[Callable[[Path], None], type[FileMismatch]] = {
    _change_byte: DigestMismatch,
    _grow: DigestMismatch,
    _truncate: DigestMismatch,
    _swap: DigestMismatch,
    _remove: MissingFile,
    _rename: MissingFile,
    _move: MissingFile,
    _add: ExtraFile,
    _add_hidden: ExtraFile,
    _nest_signature: ExtraFile,
    _link_file: UnsafeFile,
    _link_folder: UnsafeFile,
    _link_signature: UnsafeFile,
    _pipe: UnsafeFile,
}


@pytest.mark.parametrize(("tamper", "error"), TAMPERING.items(), ids=lambda value: value.__name__.strip("_"))
def test_a_changed_folder_is_refused(
    folder: Path,
    signatures: tuple[str, str],
    keys: TrustedKeys,
    tamper: Callable[[Path], None],
    error: type[FileMismatch],
) -> None:
    tamper(folder)
    with pytest.raises(error) as caught:
        verify_folder(folder, *signatures, keys)
    assert caught.value.path in str(caught.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, signatures: tuple[str, str], keys: TrustedKeys) -> None:
    with pytest.raises(MissingFile):
        verify_folder(tmp_path / "absent", *signatures, keys)


def test_another_adapter_that_is_signed_as_validly_is_refused(
    folder: Path,
    tmp_path: Path,
    signer: LocalKeySigner,
    signatures: tuple[str, str],
    keys: TrustedKeys,
    make_claims: MakeClaims,
) -> None:
    other = _write(tmp_path / "other", CONTENTS | {"adapter_model.safetensors": b"WEIGHTS"})
    other_bundle, other_attestation = _sign(other, signer, make_claims, adapter="other")
    with pytest.raises(NameMismatch) as caught:
        verify_folder(other, other_bundle, signatures[1], keys)
    assert caught.value.field == "root_digest"
    with pytest.raises(NameMismatch):
        verify_folder(folder, signatures[0], other_attestation, keys)
    with pytest.raises(DigestMismatch):
        verify_folder(other, *signatures, keys)
    assert verify_folder(other, other_bundle, other_attestation, keys).adapter == "other"


def test_the_same_bytes_under_other_names_are_refused_though_their_digest_is_the_same(
    tmp_path: Path, signer: LocalKeySigner, keys: TrustedKeys, make_claims: MakeClaims
) -> None:
    first = _write(tmp_path / "first", {"adapter_config.json": b"good", "spare.json": b"bad"})
    second = _write(tmp_path / "second", {"a.json": b"good", "adapter_config.json": b"bad"})
    first_bundle, first_attestation = _sign(first, signer, make_claims)
    second_bundle, second_attestation = _sign(second, signer, make_claims)
    assert (
        verify_folder(first, first_bundle, first_attestation, keys).root_digest
        == verify_folder(second, second_bundle, second_attestation, keys).root_digest
    )
    with pytest.raises(NameMismatch) as caught:
        verify_folder(second, second_bundle, first_attestation, keys)
    assert caught.value.field == "files"


def test_files_are_read_in_constant_memory(tmp_path: Path) -> None:
    size = 64 << 20
    with (tmp_path / "big.safetensors").open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        (found,) = read_folder(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.path, found.size) == ("big.safetensors", size)
    assert peak < 8 << 20


def test_a_file_that_is_not_of_the_expected_size_is_refused_without_reading_on(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"12345")
    assert read_file(tmp_path, "a.json", expected_size=5).sha256 == hashlib.sha256(b"12345").hexdigest()
    for size in (4, 6):
        with pytest.raises(UnsafeFile):
            read_file(tmp_path, "a.json", expected_size=size)


def test_a_link_that_appears_after_the_listing_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"1")
    (tmp_path / "b.json").symlink_to("a.json")
    with pytest.raises(UnsafeFile):
        read_file(tmp_path, "b.json")
    with pytest.raises(MissingFile):
        read_file(tmp_path, "c.json")
