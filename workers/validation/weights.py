"""One pass over the weight file: its SHA-256 and the peak of every tensor, in bounded memory.

The peak is the largest bit pattern without its sign. IEEE floats sort like their bits, so that one maximum tells zero,
finite, infinite and NaN apart without converting a single number.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from registry.base_models.safetensors_header import Header, TensorSpan

CHUNK_BYTES: Final = 4 << 20
_BUFFERS: Final = 2


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Bit layout of a float type; all values are patterns without the sign."""

    bits: type[np.unsignedinteger[Any]]
    magnitude: int
    infinity: int
    float_type: type[np.floating[Any]] | None
    bf16_overflow: int
    f16_overflow: int

    def value(self, pattern: int) -> float:
        """The number that a finite pattern stands for."""
        if self.float_type is None:
            return float(np.array(pattern << 16, dtype=np.uint32).view(np.float32))
        return float(np.array(pattern, dtype=self.bits).view(self.float_type))


# The overflow patterns are the smallest that round to infinity in bfloat16 or half precision (round to nearest, even).
FORMATS: Final[Mapping[str, FloatFormat]] = {
    "F64": FloatFormat(
        np.uint64,
        0x7FFF_FFFF_FFFF_FFFF,
        0x7FF0_0000_0000_0000,
        np.float64,
        0x47EF_F000_0000_0000,
        0x40EF_FE00_0000_0000,
    ),
    "F32": FloatFormat(np.uint32, 0x7FFF_FFFF, 0x7F80_0000, np.float32, 0x7F7F_8000, 0x477F_F000),
    "BF16": FloatFormat(np.uint16, 0x7FFF, 0x7F80, None, 0x7F80, 0x4780),
    "F16": FloatFormat(np.uint16, 0x7FFF, 0x7C00, np.float16, 0x7C00, 0x7C00),
}


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest magnitude in one tensor, as its bit pattern; `bad` counts patterns that are NaN or infinite."""

    pattern: int
    nans: int = 0
    infinities: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a weight file found; tensors that are not floats have no peak."""

    sha256: str
    peaks: Mapping[str, Peak]


def scan(descriptor: int, size: int, header: Header | None) -> Scan:
    """Read the open weight file of `size` bytes once.

    Args:
        descriptor: the open file.
        size: its size in bytes.
        header: its sound header; without one only the digest is made.

    Raises:
        OSError: the file can't be read, or became shorter meanwhile.

    """
    digest = hashlib.sha256()
    peaks: dict[str, Peak] = {}
    start = header.data_start if header else size
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="sha256") as hasher:
        reader = _Reader(descriptor, digest, hasher)
        for _ in reader.chunks(0, start):
            pass
        for span in header.tensors if header else ():
            peak = _peak(span, reader.chunks(start + span.begin, start + span.end))
            if peak is not None:
                peaks[span.name] = peak
        reader.finish()
    return Scan(sha256=digest.hexdigest(), peaks=peaks)


class _Reader:
    """Gives chunks to the caller while a second thread hashes them; two buffers take turns."""

    def __init__(self, descriptor: int, digest: "hashlib._Hash", hasher: ThreadPoolExecutor) -> None:
        self._descriptor = descriptor
        self._digest = digest
        self._hasher = hasher
        self._buffers = [bytearray(CHUNK_BYTES) for _ in range(_BUFFERS)]
        self._pending: list[Future[None] | None] = [None] * _BUFFERS
        self._turn = 0

    def chunks(self, begin: int, end: int) -> Iterator[memoryview]:
        position = begin
        while position < end:
            view = self._fill(position, min(CHUNK_BYTES, end - position))
            yield view
            position += len(view)

    def finish(self) -> None:
        for future in self._pending:
            if future:
                future.result()

    def _fill(self, position: int, wanted: int) -> memoryview:
        turn = self._turn = (self._turn + 1) % _BUFFERS
        earlier = self._pending[turn]
        if earlier:
            earlier.result()
        view = memoryview(self._buffers[turn])[:wanted]
        filled = 0
        while filled < wanted:
            count = os.preadv(self._descriptor, [view[filled:]], position + filled)
            if not count:
                raise OSError("the weight file became shorter while it was read")
            filled += count
        self._pending[turn] = self._hasher.submit(self._digest.update, view)
        return view


def _peak(span: TensorSpan, chunks: Iterator[memoryview]) -> Peak | None:
    layout = FORMATS.get(span.dtype)
    largest = nans = infinities = 0
    for chunk in chunks:
        if layout is None:
            continue
        magnitudes = _magnitudes(chunk, layout)
        top = int(magnitudes.max())
        largest = max(largest, top)
        if top >= layout.infinity:
            nans += int((magnitudes > layout.infinity).sum())
            infinities += int((magnitudes == layout.infinity).sum())
    return None if layout is None else Peak(largest, nans, infinities)


def _magnitudes(chunk: memoryview, layout: FloatFormat) -> npt.NDArray[np.unsignedinteger[Any]]:
    patterns = np.frombuffer(chunk, dtype=layout.bits)
    return np.bitwise_and(patterns, layout.bits(layout.magnitude))
