"""Checking signatures: of the files, of the release, and of a folder on this machine's own disk."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from registry.signing.bundle import FILES_PREDICATE, RELEASE_PREDICATE, UNSIGNED_FILES, ReleaseClaims
from registry.signing.dsse import open_statement
from registry.signing.errors import BadSignature, DigestMismatch, ExtraFile, MissingFile, NameMismatch
from registry.signing.folder import list_folder, read_file
from registry.signing.keys import KeyRing, TrustedKey, TrustedKeys
from registry.signing.manifest import SignedFile, root_digest

__all__ = ["KeyRing", "TrustedKey", "TrustedKeys", "verify_bundle", "verify_files", "verify_folder", "verify_release"]

T = TypeVar("T")


def verify_bundle(bundle: str, keys: KeyRing, *, now: datetime | None = None) -> tuple[SignedFile, ...]:
    """The files that `bundle` (the text of `model.sig`) signs, in signed order.

    Raises:
        BadSignature, UnknownKey: see `registry.signing.errors`.

    """
    digest, predicate = open_statement(bundle, keys, predicate_type=FILES_PREDICATE, now=now)
    sizes = _field(predicate, "sizes", dict)
    files = tuple(
        SignedFile(
            path=(path := _field(resource, "name", str)),
            size=_field(sizes, path, int),
            sha256=_field(resource, "digest", str),
        )
        for resource in _field(predicate, "resources", list)
    )
    _check_digest_of(files, digest)
    return files


def verify_files(bundle: str, keys: KeyRing, files: Iterable[SignedFile], *, now: datetime | None = None) -> None:
    """Check that `bundle` signs exactly `files`.

    Raises:
        MissingFile, ExtraFile, DigestMismatch: the first file that differs.
        BadSignature, UnknownKey: the bundle itself is not trusted.

    """
    _compare(verify_bundle(bundle, keys, now=now), files)


def verify_release(attestation: str, keys: KeyRing, *, now: datetime | None = None) -> ReleaseClaims:
    """The claims of a release attestation (the text of `release.intoto.json`).

    They are true of the files that the attestation lists; `verify_folder` checks that a folder holds those.

    Raises:
        BadSignature, UnknownKey: see `registry.signing.errors`.

    """
    return _open_release(attestation, keys, now=now)[0]


def verify_folder(
    folder: Path, bundle: str, attestation: str, keys: KeyRing, *, now: datetime | None = None
) -> ReleaseClaims:
    """Check a folder on disk against both signatures, and return what is released in it.

    Reads each file once in constant memory. Beside the signed files only `model.sig` and `release.intoto.json` may be
    there.
    The caller still has to compare the claims with what it wanted: this may be, validly, another adapter.

    Raises:
        NameMismatch: the attestation is about other files than the bundle.
        MissingFile, ExtraFile, DigestMismatch, UnsafeFile: the folder holds something else than was signed.
        BadSignature, UnknownKey: a signature is not trusted.

    """
    signed = verify_bundle(bundle, keys, now=now)
    claims, attested = _open_release(attestation, keys, now=now)
    if claims.root_digest != (found := root_digest(signed)):
        raise NameMismatch("root_digest", expected=claims.root_digest, found=found)
    if attested != signed:
        raise NameMismatch("files", expected=_paths(attested), found=_paths(signed))
    _check_folder(folder, signed)
    return claims


def _check_folder(folder: Path, signed: tuple[SignedFile, ...]) -> None:
    """Compare names and sizes first, since that costs nothing, then every byte."""
    sizes = {path: size for path, size in list_folder(folder).items() if path not in UNSIGNED_FILES}
    _compare_names(_paths(signed), sizes)
    for file in signed:
        if sizes[file.path] != file.size or read_file(folder, file.path, expected_size=file.size) != file:
            raise DigestMismatch(file.path)


def _compare(signed: tuple[SignedFile, ...], found: Iterable[SignedFile]) -> None:
    by_path = {file.path: file for file in found}
    _compare_names(_paths(signed), by_path)
    for file in signed:
        if by_path[file.path] != file:
            raise DigestMismatch(file.path)


def _compare_names(signed: Iterable[str], found: Iterable[str]) -> None:
    signed_paths, found_paths = set(signed), set(found)
    if missing := signed_paths - found_paths:
        raise MissingFile(min(missing))
    if extra := found_paths - signed_paths:
        raise ExtraFile(min(extra))


def _open_release(
    attestation: str, keys: KeyRing, *, now: datetime | None
) -> tuple[ReleaseClaims, tuple[SignedFile, ...]]:
    digest, predicate = open_statement(attestation, keys, predicate_type=RELEASE_PREDICATE, now=now)
    files = tuple(
        SignedFile(path=_field(file, "path", str), size=_field(file, "size", int), sha256=_field(file, "sha256", str))
        for file in _field(predicate, "files", list)
    )
    _check_digest_of(files, digest)
    claims = ReleaseClaims(
        tenant=_field(predicate, "tenant", str),
        adapter=_field(predicate, "adapter", str),
        version=_field(predicate, "version", str),
        base_model=_field(predicate, "base_model", str),
        base_revision=_field(predicate, "base_revision", str),
        rank=_field(predicate, "rank", int),
        root_digest=digest,
        engine_name=_field(predicate, "engine_name", str),
        validation_digest=_field(predicate, "validation_digest", str),
        approvals=tuple(_field(predicate, "approvals", list)),
    )
    return claims, files


def _check_digest_of(files: tuple[SignedFile, ...], digest: str) -> None:
    try:
        computed = root_digest(files)
    except ValueError as error:
        raise BadSignature("the signed statement holds something that is not a digest") from error
    if computed != digest or len({file.path for file in files}) != len(files):
        raise BadSignature("the signed statement contradicts itself")


def _paths(files: tuple[SignedFile, ...]) -> list[str]:
    return [file.path for file in files]


def _field(record: Any, name: str, kind: type[T]) -> T:  # noqa: ANN401 - it is what JSON holds, and is checked here
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadSignature(f"the signed statement has no '{name}' of the kind {kind.__name__}")
    return value
