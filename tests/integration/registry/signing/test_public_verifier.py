"""The public model-signing tool judges our bundles: `model_signing verify key`, run as a user runs it."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.errors import FileMismatch, SigningError
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.signing.manifest import root_digest
from registry.signing.verify import TrustedKeys, verify_folder
from tests.factories.signed_folders import read_folder

CONTENTS = {
    "README.md": b"",
    "adapter_config.json": b'{"peft_type": "LORA", "r": 8}',
    "adapter_model.safetensors": bytes(range(256)) * 8192,
    "nested-a/notes.txt": b"sorted after nested/",
    "nested/Zürich notes.md": b"not ASCII",
}


@pytest.fixture
def key(tmp_path: Path) -> LocalKeySigner:
    signer = generate_key_file(tmp_path / "key.pem")
    (tmp_path / "public.pem").write_text(signer.public_pem())
    return signer


@pytest.fixture
def folder(tmp_path: Path, key: LocalKeySigner) -> Path:
    """A signed version as `lorekeeper pull` leaves it: the files, with both signatures beside them."""
    return _signed_folder(tmp_path / "v1", key, CONTENTS)


def _signed_folder(folder: Path, signer: LocalKeySigner, contents: dict[str, bytes]) -> Path:
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    files = read_folder(folder)
    (folder / "model.sig").write_text(sign_files(signer, files))
    claims = ReleaseClaims(
        tenant="acme",
        adapter="support-tone",
        version="v1",
        base_model="smollm2",
        base_revision="b" * 64,
        rank=8,
        root_digest=root_digest(files),
        engine_name="lk-support-tone-v1-0123456789abcdef0123",
        validation_digest="c" * 64,
        approvals=({"by": "rita@example.com"},),
    )
    (folder / "release.intoto.json").write_text(sign_release(signer, claims, files))
    return folder


def _public_tool(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "model_signing", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def _verify_publicly(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    public_key = folder.parent / "public.pem"
    return _public_tool(
        "verify", "key", folder, "--signature", folder / "model.sig", "--public_key", public_key, *options
    )


def _verify(folder: Path, key: LocalKeySigner) -> ReleaseClaims:
    bundle, attestation = ((folder / name).read_text() for name in ("model.sig", "release.intoto.json"))
    return verify_folder(folder, bundle, attestation, TrustedKeys.from_pem(key.public_pem()))


def test_a_signed_version_is_accepted_by_the_public_tool_and_by_us(folder: Path, key: LocalKeySigner) -> None:
    answer = _verify_publicly(folder)
    assert (answer.returncode, answer.stdout.strip()) == (0, "Verification succeeded"), answer.stderr
    assert "WARNING" not in answer.stdout + answer.stderr
    assert _verify(folder, key).adapter == "support-tone"


def test_our_digest_is_the_one_that_the_public_tool_computes(folder: Path) -> None:
    own = folder.parent / "own.sig"
    names = ("model.sig", "release.intoto.json")
    ignored = [option for name in names for option in ("--ignore-paths", str(folder / name))]
    private_key = folder.parent / "key.pem"
    signed = _public_tool("sign", "key", folder, "--signature", own, "--private_key", private_key, *ignored)
    assert signed.returncode == 0, signed.stderr
    assert _subject(own) == _subject(folder / "model.sig")


def _subject(bundle: Path) -> tuple[str, list[tuple[str, str]]]:
    """Digest and listed files of a bundle, whoever wrote it."""
    statement = json.loads(base64.b64decode(json.loads(bundle.read_text())["dsseEnvelope"]["payload"]))
    resources = [(resource["name"], resource["digest"]) for resource in statement["predicate"]["resources"]]
    return statement["subject"][0]["digest"]["sha256"], resources


def _flip(path: str, place: int) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        content = bytearray((folder / path).read_bytes())
        content[place] ^= 1
        (folder / path).write_bytes(content)

    return flip


def _append(folder: Path) -> None:
    with (folder / "README.md").open("ab") as file:
        file.write(b"\n")


def _truncate(folder: Path) -> None:
    with (folder / "adapter_model.safetensors").open("r+b") as file:
        file.truncate(1000)


def _rename(folder: Path) -> None:
    (folder / "adapter_config.json").rename(folder / "adapter_config2.json")


def _rename_case(folder: Path) -> None:
    (folder / "README.md").rename(folder / "readme.md")


def _move(folder: Path) -> None:
    (folder / "nested-a/notes.txt").rename(folder / "nested/notes.txt")


def _swap(folder: Path) -> None:
    one, two = folder / "README.md", folder / "adapter_config.json"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def _remove(folder: Path) -> None:
    (folder / "README.md").unlink()


def _add(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"")


def _link(folder: Path) -> None:
    (folder / "README.md").rename(folder.parent / "aside.md")
    (folder / "README.md").symlink_to(folder.parent / "aside.md")


TAMPERING: dict[str, Callable[[Path], None]] = {
    "first byte of the weights": _flip("adapter_model.safetensors", 0),
    "last byte of the weights": _flip("adapter_model.safetensors", -1),
    "a byte of the configuration": _flip("adapter_config.json", 5),
    "an empty file grows": _append,
    "the weights are cut off": _truncate,
    "a file is renamed": _rename,
    "a name changes its case": _rename_case,
    "a file moves": _move,
    "two files are swapped": _swap,
    "a file is removed": _remove,
    "a file is added": _add,
    "a file becomes a link": _link,
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING)
def test_a_changed_version_is_refused_by_the_public_tool_and_by_us(
    folder: Path, key: LocalKeySigner, tamper: Callable[[Path], None]
) -> None:
    tamper(folder)
    answer = _verify_publicly(folder)
    assert answer.returncode == 1
    assert "Verification failed" in answer.stderr
    with pytest.raises(FileMismatch):
        _verify(folder, key)


def test_git_files_need_an_option_of_the_public_tool_but_are_always_refused_by_us(
    folder: Path, key: LocalKeySigner
) -> None:
    assert _verify_publicly(folder, "--no-ignore-git-paths").returncode == 0
    (folder / ".gitattributes").write_text("*.safetensors filter=evil\n")
    assert _verify_publicly(folder).returncode == 0
    assert _verify_publicly(folder, "--no-ignore-git-paths").returncode == 1
    with pytest.raises(FileMismatch):
        _verify(folder, key)


def test_a_bundle_of_other_files_or_another_key_is_refused(folder: Path, tmp_path: Path, key: LocalKeySigner) -> None:
    other = _signed_folder(tmp_path / "v2", key, CONTENTS | {"adapter_config.json": b"{}"})
    (folder / "model.sig").write_text((other / "model.sig").read_text())
    assert _verify_publicly(folder).returncode == 1
    with pytest.raises(SigningError):
        _verify(folder, key)
    (tmp_path / "public.pem").write_text(generate_key_file(tmp_path / "other.pem").public_pem())
    assert "Key mismatch" in _verify_publicly(other).stderr
