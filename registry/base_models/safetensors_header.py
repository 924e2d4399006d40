"""The header of a safetensors file, believed only where the file itself bears it out.

Layout: 8 bytes little-endian header length, the header (a JSON object from tensor names to dtype, shape and byte
offsets), then the data. A header is accepted when its tensors tile the data exactly: no gap, no overlap, no byte left.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from registry.base_models import strict_json

DTYPE_BITS: Final[Mapping[str, int]] = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
MAX_HEADER_BYTES: Final = 10 * 1000 * 1000
MAX_NAME_LENGTH: Final = 512
MAX_DIMENSIONS: Final = 8
_PREFIX_BYTES: Final = 8
_METADATA: Final = "__metadata__"
_TENSOR_KEYS: Final = frozenset({"dtype", "shape", "data_offsets"})


class HeaderError(ValueError):
    """The file is no sound safetensors file. `code` is one stable word, `tensor` the tensor it is about, if any."""

    def __init__(self, message: str, *, code: str, tensor: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.tensor = tensor


@dataclass(frozen=True, slots=True)
class TensorSpan:
    """One tensor: `begin` and `end` are byte offsets from the start of the data, not of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        return _product(self.shape)


@dataclass(frozen=True, slots=True)
class Header:
    """What a file holds: tensors in the order of their bytes; `data_start` is where the data begins in the file."""

    tensors: tuple[TensorSpan, ...]
    data_start: int
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_header(descriptor: int, size: int, *, max_bytes: int = MAX_HEADER_BYTES) -> Header:
    """Read and check the header of the open file `descriptor` of `size` bytes; the file position isn't moved.

    Raises:
        HeaderError: the file is not what its header says, or the header is not sound.
        OSError: the file can't be read.

    """
    prefix = os.pread(descriptor, _PREFIX_BYTES, 0)
    if len(prefix) < _PREFIX_BYTES:
        raise HeaderError(f"the file is truncated: {size} bytes, too short for a safetensors header", code="truncated")
    length = int.from_bytes(prefix, "little")
    if length > min(max_bytes, size - _PREFIX_BYTES):
        raise _too_long(descriptor, length, size, max_bytes)
    text = os.pread(descriptor, length, _PREFIX_BYTES)
    return parse_header(text, data_bytes=size - _PREFIX_BYTES - length)


def parse_header(text: bytes, *, data_bytes: int) -> Header:
    """Check the header `text` of a file with `data_bytes` bytes behind it.

    Raises:
        HeaderError: see `read_header`.

    """
    if not text.startswith(b"{"):
        raise HeaderError("the safetensors header is not a JSON object", code="header_json")
    try:
        content = strict_json.parse(text, max_depth=4)
    except strict_json.StrictJsonError as error:
        raise HeaderError(f"the safetensors header can't be read: {error}", code="header_json") from error
    if not isinstance(content, dict):
        raise HeaderError("the safetensors header is not a JSON object", code="header_json")
    metadata = _metadata(content.pop(_METADATA, {}))
    spans = sorted((_span(name, entry) for name, entry in content.items()), key=lambda span: (span.begin, span.end))
    _check_tiling(spans, data_bytes)
    return Header(tensors=tuple(spans), data_start=_PREFIX_BYTES + len(text), metadata=metadata)


def _too_long(descriptor: int, length: int, size: int, max_bytes: int) -> HeaderError:
    kind = foreign_format(os.pread(descriptor, 64, 0))
    if kind:
        return HeaderError(f"the file is no safetensors file but {kind}", code="foreign_format")
    if length > max_bytes:
        return HeaderError(
            f"the safetensors header claims {length:,} bytes, the limit is {max_bytes:,}", code="header_too_long"
        )
    return HeaderError(
        f"the safetensors file is truncated: its header claims {length:,} bytes, the whole file has {size:,}",
        code="truncated",
    )


def foreign_format(head: bytes) -> str | None:
    """Name the format whose mark `head` (the first bytes of a file) bears, or None."""
    marks = (
        (b"version https://git-lfs", "a Git LFS pointer (clone again with git-lfs installed)"),
        (b"PK\x03\x04", "a zip archive or PyTorch pickle"),
        (b"\x80\x02", "a pickle"),
        (b"\x80\x03", "a pickle"),
        (b"\x80\x04", "a pickle"),
        (b"\x80\x05", "a pickle"),
        (b"GGUF", "a GGUF file"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\x93NUMPY", "a NumPy file"),
        (b"<!DOCTYPE", "a web page"),
        (b"<html", "a web page"),
    )
    return next((name for mark, name in marks if head.startswith(mark)), None)


def _metadata(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise HeaderError("the __metadata__ of the safetensors header must map text to text", code="header_metadata")
    return value


def _span(name: str, entry: object) -> TensorSpan:
    if not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise HeaderError(
            f"the safetensors header names a tensor {name[:80]!a}: names are 1 to {MAX_NAME_LENGTH} printable "
            "characters",
            code="tensor_name",
            tensor=ascii(name[:80]),
        )
    if not isinstance(entry, dict) or entry.keys() != _TENSOR_KEYS:
        raise _entry_error(name, "needs exactly dtype, shape and data_offsets")
    dtype, shape = entry["dtype"], entry["shape"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise _entry_error(name, f"has the unknown dtype {ascii(dtype)[:40]}", code="dtype_unknown")
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
        raise _entry_error(name, f"has no usable shape (up to {MAX_DIMENSIONS} whole numbers from 0)")
    offsets = entry["data_offsets"]
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:  # noqa: PLR2004 - a pair
        raise _entry_error(name, "has no usable data_offsets (two whole numbers, begin before end)", code="offsets")
    return _sized_span(TensorSpan(name, dtype, tuple(shape), *offsets))


def _sized_span(span: TensorSpan) -> TensorSpan:
    bits = span.elements * DTYPE_BITS[span.dtype]
    if bits != 8 * (span.end - span.begin):
        raise _entry_error(
            span.name,
            f"is said to take {span.end - span.begin:,} bytes, but its shape {list(span.shape)} of {span.dtype} "
            f"takes {-(-bits // 8):,}",
            code="tensor_size",
        )
    return span


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 48 for item in value)


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _check_tiling(spans: list[TensorSpan], data_bytes: int) -> None:
    position = 0
    for span in spans:
        if span.begin < position:
            raise _entry_error(span.name, "overlaps the bytes of another tensor", code="overlap")
        if span.begin > position:
            raise _entry_error(span.name, f"leaves {span.begin - position:,} unused bytes before it", code="gap")
        position = span.end
    if position > data_bytes:
        raise HeaderError(
            f"the safetensors file is truncated: its tensors need {position:,} bytes of data, the file has "
            f"{data_bytes:,}",
            code="truncated",
        )
    if position < data_bytes:
        raise HeaderError(
            f"the safetensors file has {data_bytes - position:,} trailing bytes that belong to no tensor",
            code="trailing_bytes",
        )


def _entry_error(name: str, fault: str, *, code: str = "header_entry") -> HeaderError:
    return HeaderError(f"in the safetensors header, tensor {name!a} {fault}", code=code, tensor=name)
