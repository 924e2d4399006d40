from dataclasses import dataclass, field
from typing import Final

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DeclaredFile:
    """A file as the upload's manifest declares it: size in bytes, digest in hex."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a registry takes. Sizes are in bytes.

    Args:
        max_rank: the largest rank that engines for this base are started with.
        max_weights_bytes: largest adapter_model.safetensors.
        max_file_bytes: largest of any other file.
        max_config_bytes: largest adapter_config.json or added_tokens.json, which are parsed.
        max_files: how many files and folders are looked at.
        max_depth: how deep folders are looked into.
        max_tensors: how many tensors one file may hold.
        max_scale: alpha over rank above which the adapter is suspicious.
        dtypes: element types that every engine loads as they are.

    """

    max_rank: int = 64
    max_weights_bytes: int = 8 << 30
    max_file_bytes: int = 64 * _MIB
    max_config_bytes: int = _MIB
    max_files: int = 1000
    max_depth: int = 8
    max_tensors: int = 65_536
    max_scale: float = 128.0
    dtypes: frozenset[str] = field(default=frozenset({"F32", "F16", "BF16"}))
