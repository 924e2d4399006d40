"""What a file of an upload is for, by its path alone."""

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from registry import naming
from registry.base_models.description import TEMPLATE_FILE, TOKENIZER_FILES

CONFIG_FILE: Final = "adapter_config.json"
WEIGHTS_FILE: Final = "adapter_model.safetensors"
ADDED_TOKENS_FILE: Final = "added_tokens.json"
NEW_EMBEDDINGS_FILE: Final = "new_embeddings.safetensors"
_DOC_STEMS: Final = frozenset({"LICENSE", "LICENCE", "NOTICE", "README"})
_DOC_SUFFIXES: Final = frozenset({"", ".md", ".txt"})
_ARCHIVE_SUFFIXES: Final = frozenset({".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst"})


class Kind(StrEnum):
    """Part: one of the two files every adapter has. Refused: nothing that an adapter may hold at all."""

    PART = "part"
    DOCUMENT = "document"
    TOKENIZER = "tokenizer"
    EXTRA = "extra"
    REFUSED = "refused"


def kind_of(path: str) -> Kind:
    """Say what `path` is; only files in the root can be anything but extra or refused."""
    pure = PurePosixPath(path)
    if path in {CONFIG_FILE, WEIGHTS_FILE}:
        return Kind.PART
    if path in TOKENIZER_FILES or path == TEMPLATE_FILE:
        return Kind.TOKENIZER
    if pure.name == path and pure.suffix in _DOC_SUFFIXES and (pure.stem.upper() in _DOC_STEMS or pure.suffix):
        return Kind.DOCUMENT
    return Kind.EXTRA if refusal(path) is None else Kind.REFUSED


def refusal(path: str) -> str | None:
    """Why an adapter may not hold a file of this kind; None if it may."""
    try:
        naming.check_file_kind(path, field="file")
    except naming.FileKindRefused as error:
        return error.message
    return None


def path_fault(path: str) -> str | None:
    """Why `path` is unsafe inside an upload; None if it is sound."""
    try:
        naming.check_path(path, field="file")
    except naming.BadPath as error:
        return error.message
    return None


def is_archive(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _ARCHIVE_SUFFIXES
