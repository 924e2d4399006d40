"""A folder's files as a signature covers them."""

from pathlib import Path

from registry.signing.folder import list_folder, read_file
from registry.signing.manifest import SignedFile, in_signed_order


def read_folder(folder: Path) -> tuple[SignedFile, ...]:
    """Hash every file of a folder; the files come in signed order."""
    return in_signed_order(read_file(folder, path, expected_size=size) for path, size in list_folder(folder).items())
