"""The base models on this machine: which folder holds which revision, and whether there is room to run it."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from registry.base_models.description import BaseDescription, DescriptionError, describe_folder
from workers.evaluation.errors import NotPossibleError

# How folders of a run begin in the machine's temporary folder, so that those of a killed one are found.
SCRATCH: Final = "lorekeeper-validate-"
# Tokenizer, activations, caches and the interpreter's libraries, besides the weights.
_BESIDES_BYTES: Final = 2 << 30
_COPIES: Final = 3
_MEMINFO: Final = Path("/proc/meminfo")
SINGLE_BYTES: Final = 4
HALF_BYTES: Final = 2


def find_base(root: Path | None, *, name: str, label: str) -> Path:
    """The folder of a revision: `<root>/<base model>/<revision>`.

    Raises:
        NotPossibleError: this machine doesn't have it.

    """
    if root is None:
        raise NotPossibleError("this worker has no base models (LOREKEEPER_BASE_MODEL_FOLDERS)")
    folder = root / name / label
    if not folder.is_dir():
        raise NotPossibleError(f"this worker has no folder {name}/{label} among its base models")
    return folder


def check_base(folder: Path, *, digest: str) -> None:
    """Read the whole folder and compare it with the revision that was registered.

    Raises:
        NotPossibleError: it holds something else, or can't be read.

    """
    try:
        found = describe_folder(folder).digest
    except DescriptionError as error:
        raise NotPossibleError(f"the base's folder on this worker can't be read: {error}") from error
    except OSError as error:
        # Where it lies on this machine is no tenant's business.
        raise NotPossibleError(f"the base's folder on this worker can't be read: {error.strerror}") from error
    if found != digest:
        raise NotPossibleError("the base's folder on this worker holds another revision than the registered one")


def choose_bytes(description: BaseDescription, *, most: int) -> int:
    """How many bytes a weight takes in memory: 4 where that fits, since CPUs are slow and rough with less, else 2.

    Args:
        description: the base.
        most: bytes that may be used; what is free on this machine counts as well.

    Raises:
        NotPossibleError: not even half precision fits.

    """
    elements = sum(math.prod(info.shape) for info in description.tensors.values())
    room = min(most, _available())
    for size in (SINGLE_BYTES, HALF_BYTES):
        if elements * size + _BESIDES_BYTES <= room:
            return size
    needed = elements * HALF_BYTES + _BESIDES_BYTES
    raise NotPossibleError(f"the base needs {needed >> 20:,} MiB of memory, this worker has {room >> 20:,} MiB for it")


def check_room(weights: Sequence[Path]) -> None:
    """Whether adapters fit beside their base: the file as it is, and what peft makes of it, which may be twice as much.

    Raises:
        NotPossibleError: they don't.

    """
    needed, room = _COPIES * sum(path.stat().st_size for path in weights), _available()
    if needed > room:
        raise NotPossibleError(f"the adapters need {needed >> 20:,} MiB of memory, this worker has {room >> 20:,} MiB")


def _available() -> int:
    """Bytes of memory that can be had without swapping."""
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
