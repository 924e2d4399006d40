"""Copies of the base's own embeddings in an adapter, which PEFT saves by itself beside a LoRA on one of them.

Engines pass over them, so that one is harmless as long as it is what the base has; a changed one is training that is
lost. Only a comparison of the values tells.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from registry.base_models.description import BaseDescription
from registry.base_models.modules import EMBEDDINGS, HEAD
from registry.base_models.safetensors_header import HeaderError, TensorSpan, read_header
from workers.validation.pairs import PREFIX

_TAIL: Final = ".base_layer.weight"
_ELEMENTS: Final = 1 << 20
_MAX_HEADER_BYTES: Final = 100_000_000
_BYTES: Final = {"F32": 4, "F16": 2, "BF16": 2}
# Half of what bfloat16 cuts off, for rounding to the nearest even.
_BF16_HALF: Final = 0x7FFF

Array = npt.NDArray[Any]


def embedding_of_copy(key: str) -> str | None:
    """The base's tensor that `key` is PEFT's name for a copy of; None if it is no such name."""
    if not key.startswith(PREFIX) or not key.endswith(_TAIL):
        return None
    module = key.removeprefix(PREFIX).removesuffix(_TAIL)
    is_embedding = module == HEAD or module.rpartition(".")[2] in EMBEDDINGS
    return f"{module}.weight" if is_embedding else None


def unchanged_copies(
    descriptor: int, data_start: int, spans: Sequence[TensorSpan], *, base: BaseDescription, base_folder: Path
) -> frozenset[str]:
    """Names of the tensors that hold exactly what the base has in their place.

    Args:
        descriptor: the open weight file.
        data_start: where in it the tensors' bytes begin.
        spans: its tensors.
        base: the base; its folder's weight files are looked at only where it names a tensor of the same shape.
        base_folder: where the base's weight files lie.

    Raises:
        OSError: a file can't be read.

    """
    return frozenset(
        span.name for span in spans if _is_unchanged(descriptor, data_start, span, base=base, base_folder=base_folder)
    )


def _is_unchanged(
    descriptor: int, data_start: int, span: TensorSpan, *, base: BaseDescription, base_folder: Path
) -> bool:
    name = _original(span.name, base)
    if name is None or base.tensors[name].shape != span.shape or span.dtype not in _BYTES:
        return False
    for path in sorted(base_folder.glob("model*.safetensors")):
        with path.open("rb") as file:
            found = _find(file.fileno(), name)
            if found:
                start, original = found
                copy = _values(descriptor, data_start + span.begin, span)
                return original.dtype in _BYTES and all(
                    np.array_equal(_as_stored(theirs, span.dtype), ours)
                    for ours, theirs in zip(copy, _values(file.fileno(), start, original), strict=True)
                )
    return False


def _original(key: str, base: BaseDescription) -> str | None:
    """The base's tensor behind a copy: of a tied head, its embedding."""
    name = embedding_of_copy(key)
    if name in base.tensors:
        return name
    if name != f"{HEAD}.weight" or not base.tied_embeddings:
        return None
    return next((tensor for tensor in base.tensors if tensor.split(".")[-2] in EMBEDDINGS), None)


def _find(descriptor: int, name: str) -> tuple[int, TensorSpan] | None:
    """Where the tensor's bytes begin in a weight file of the base, if they are there."""
    try:
        header = read_header(descriptor, os.fstat(descriptor).st_size, max_bytes=_MAX_HEADER_BYTES)
    except HeaderError:
        return None
    found = next((span for span in header.tensors if span.name == name), None)
    return (header.data_start + found.begin, found) if found else None


def _values(descriptor: int, start: int, span: TensorSpan) -> Iterator[Array]:
    """The tensor in pieces of the same number of elements whatever its type; BF16 as bit patterns."""
    width = _BYTES[span.dtype]
    for first in range(0, span.elements, _ELEMENTS):
        count = min(_ELEMENTS, span.elements - first)
        content = os.pread(descriptor, count * width, start + first * width)
        yield np.frombuffer(content, dtype={"F32": np.float32, "F16": np.float16, "BF16": np.uint16}[span.dtype])


def _as_stored(values: Array, dtype: str) -> Array:
    """The base's values as a copy of type `dtype` would hold them; BF16 as bit patterns on both sides."""
    is_bf16 = values.dtype == np.uint16
    if dtype == "BF16":
        return values if is_bf16 else _rounded(values.astype(np.float32))
    single = np.left_shift(values, 16, dtype=np.uint32).view(np.float32) if is_bf16 else values
    with np.errstate(over="ignore"):
        return single.astype(np.float32 if dtype == "F32" else np.float16)


def _rounded(values: Array) -> Array:
    patterns = values.view(np.uint32)
    return ((patterns + _BF16_HALF + ((patterns >> 16) & 1)) >> 16).astype(np.uint16)
