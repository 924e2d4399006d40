"""What is signed: a version's files, and the one digest that stands for their bytes."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from registry.naming import path_order


@dataclass(frozen=True, slots=True)
class SignedFile:
    """One file of a version.

    Attributes:
        path: relative to the version's folder, segments separated by `/`.
        size: in bytes.
        sha256: of the bytes, 64 lower-case hex digits.

    """

    path: str
    size: int
    sha256: str


def in_signed_order(files: Iterable[SignedFile]) -> tuple[SignedFile, ...]:
    """The files sorted by path segments, the order in which OpenSSF model signing lists and digests them."""
    return tuple(sorted(files, key=lambda file: path_order(file.path)))


def root_digest(files: Iterable[SignedFile]) -> str:
    """SHA-256 in hex over the files' raw digests in signed order: the subject of a model-signing statement.

    It stands for the bytes alone. Names and sizes are bound by the signed list, so compare that list too.
    """
    digest = hashlib.sha256()
    for file in in_signed_order(files):
        digest.update(bytes.fromhex(file.sha256))
    return digest.hexdigest()
