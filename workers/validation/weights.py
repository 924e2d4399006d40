"""One pass over the weight file: its SHA-256, the peak and the norm of every tensor, and how long reading took.

The peak is the largest bit pattern without its sign. IEEE floats sort like their bits, so that one maximum tells zero,
finite, infinite and NaN apart without converting a single number. Reads are blocks of many tensors, so that the thread
that hashes is woken a few times per file and not once per tensor.
"""

import hashlib
import math
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from registry.base_models.safetensors_header import Header, TensorSpan
from workers.validation.device import Device

CHUNK_BYTES: Final = 1 << 20
_BUFFERS: Final = 3
# A tensor's bytes are cut at multiples of the largest element from its first byte.
_LARGEST_ELEMENT: Final = 8
# Squares are summed over a sample where a piece is large: every 17th run of 512 values, which falls on all rows and
# columns alike, as 17 divides no usual width.
_RUN: Final = 512
_RUN_STEP: Final = 17
_EXACT_UP_TO: Final = 1 << 15

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Bit layout of a float type; all values are patterns without the sign."""

    bits: type[np.unsignedinteger[Any]]
    signed: type[np.signedinteger[Any]]
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
        np.int64,
        0x7FFF_FFFF_FFFF_FFFF,
        0x7FF0_0000_0000_0000,
        np.float64,
        0x47EF_F000_0000_0000,
        0x40EF_FE00_0000_0000,
    ),
    "F32": FloatFormat(np.uint32, np.int32, 0x7FFF_FFFF, 0x7F80_0000, np.float32, 0x7F7F_8000, 0x477F_F000),
    "BF16": FloatFormat(np.uint16, np.int16, 0x7FFF, 0x7F80, None, 0x7F80, 0x4780),
    "F16": FloatFormat(np.uint16, np.int16, 0x7FFF, 0x7C00, np.float16, 0x7C00, 0x7C00),
}


@dataclass(frozen=True, slots=True)
class Peak:
    """What one tensor's values come to.

    Args:
        pattern: the largest magnitude, as its bit pattern.
        nans: how many values are NaN.
        infinities: how many values are infinite.
        squares: the sum of all squares, of a large tensor estimated from a sample; not finite if a value isn't, or if
            it is too large for single precision.

    """

    pattern: int
    nans: int = 0
    infinities: int = 0
    squares: float = 0.0

    @property
    def norm(self) -> float:
        """The Frobenius norm; infinite where it is too large to be told."""
        return math.sqrt(self.squares) if math.isfinite(self.squares) else math.inf


@dataclass(frozen=True, slots=True)
class LoadTime:
    """How long one pass took: from disk (or its cache) to memory, and on to a device where there is one."""

    disk_ms: float
    device_ms: float | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a weight file found; tensors that are not floats have no peak."""

    sha256: str
    peaks: Mapping[str, Peak]
    load: LoadTime


def scan(descriptor: int, size: int, header: Header | None, *, device: Device | None = None) -> Scan:
    """Read the open weight file of `size` bytes once.

    Args:
        descriptor: the open file.
        size: its size in bytes.
        header: its sound header; without one only the digest is made.
        device: where an engine would put the weights; every block is copied there for the time it takes.

    Raises:
        OSError: the file can't be read, or became shorter meanwhile.

    """
    tallies = {span.name: _Tally(FORMATS[span.dtype]) for span in _floats(header)}
    hashers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sha256")
    with hashers as hasher, np.errstate(all="ignore"):
        reader = _Reader(descriptor, hasher, device)
        for block in _blocks(size, header):
            view = reader.read(block.begin, block.end)
            for piece in block.pieces:
                tally = tallies.get(piece.name)
                if tally:
                    tally.add(view[piece.begin : piece.end])
        sha256 = reader.finish()
    return Scan(sha256, {name: tally.peak() for name, tally in tallies.items()}, reader.load())


def _floats(header: Header | None) -> Iterator[TensorSpan]:
    return (span for span in (header.tensors if header else ()) if span.dtype in FORMATS)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes of one tensor inside a block, from the block's first byte."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _Block:
    """What is read at once: offsets in the file."""

    begin: int
    end: int
    pieces: tuple[_Piece, ...] = ()


def _blocks(size: int, header: Header | None) -> Iterator[_Block]:
    """The whole file in blocks of at most CHUNK_BYTES; no element of a tensor is cut in two."""
    start = header.data_start if header else size
    for begin in range(0, start, CHUNK_BYTES):
        yield _Block(begin, min(begin + CHUNK_BYTES, start))
    block, pieces = start, list[_Piece]()
    for span in header.tensors if header else ():
        position, end = start + span.begin, start + span.end
        while position < end:
            room = (block + CHUNK_BYTES - position) // _LARGEST_ELEMENT * _LARGEST_ELEMENT
            if room <= 0:
                yield _Block(block, position, tuple(pieces))
                block, pieces = position, []
                continue
            stop = min(end, position + room)
            pieces.append(_Piece(span.name, position - block, stop - block))
            position = stop
    if pieces:
        yield _Block(block, block + pieces[-1].end, tuple(pieces))


class _Reader:
    """Gives blocks to the caller while a second thread hashes them; a few buffers take turns."""

    def __init__(self, descriptor: int, hasher: ThreadPoolExecutor, device: Device | None) -> None:
        self._descriptor = descriptor
        self._digest = hashlib.sha256()
        self._hasher = hasher
        self._device = device
        self._buffers = [bytearray(CHUNK_BYTES) for _ in range(_BUFFERS)]
        self._pending: list[Future[None] | None] = [None] * _BUFFERS
        self._turn = 0
        self._disk_s = self._device_s = 0.0

    def read(self, begin: int, end: int) -> memoryview:
        """The bytes of the file from `begin` to `end`; good until as many blocks more are read as there are buffers."""
        turn = self._turn = (self._turn + 1) % _BUFFERS
        earlier = self._pending[turn]
        if earlier:
            earlier.result()
        view = memoryview(self._buffers[turn])[: end - begin]
        self._fill(view, begin)
        self._pending[turn] = self._hasher.submit(self._digest.update, view)
        if self._device:
            started = time.perf_counter()
            self._device.copy(view)
            self._device_s += time.perf_counter() - started
        return view

    def finish(self) -> str:
        """Wait for the hashing; the SHA-256 in hex of all that was read."""
        for future in self._pending:
            if future:
                future.result()
        return self._digest.hexdigest()

    def load(self) -> LoadTime:
        disk_ms = round(self._disk_s * 1000, 3)
        if self._device is None:
            return LoadTime(disk_ms)
        return LoadTime(disk_ms, round(self._device_s * 1000, 3), self._device.name)

    def _fill(self, view: memoryview, position: int) -> None:
        started, filled = time.perf_counter(), 0
        while filled < len(view):
            count = os.preadv(self._descriptor, [view[filled:]], position + filled)
            if not count:
                raise OSError("the weight file became shorter while it was read")
            filled += count
        self._disk_s += time.perf_counter() - started


class _Tally:
    """Adds up what the pieces of one tensor hold."""

    def __init__(self, layout: FloatFormat) -> None:
        self._layout = layout
        self._top = self._nans = self._infinities = 0
        self._squares = 0.0

    def add(self, piece: memoryview) -> None:
        layout = self._layout
        patterns: Array = np.frombuffer(piece, dtype=layout.bits)
        top = _largest(patterns, layout)
        self._top = max(self._top, top)
        if top >= layout.infinity:
            magnitudes = np.bitwise_and(patterns, layout.bits(layout.magnitude))
            self._nans += int((magnitudes > layout.infinity).sum())
            self._infinities += int((magnitudes == layout.infinity).sum())
        else:
            self._squares += _squares(patterns, layout)

    def peak(self) -> Peak:
        squares = math.inf if self._nans or self._infinities else self._squares
        return Peak(self._top, self._nans, self._infinities, squares)


def _largest(patterns: Array, layout: FloatFormat) -> int:
    """The largest pattern without its sign. Two maxima and no copy: negative numbers are the largest unsigned ones."""
    positive, any_sign = int(patterns.view(layout.signed).max()), int(patterns.max())
    negative = any_sign & layout.magnitude if any_sign > layout.magnitude else 0
    return max(positive, negative, 0)


def _squares(patterns: Array, layout: FloatFormat) -> float:
    sample = patterns
    if patterns.size > _EXACT_UP_TO:
        sample = patterns[: patterns.size // _RUN * _RUN].reshape(-1, _RUN)[::_RUN_STEP]
    if layout.float_type is None:
        values: Array = np.left_shift(sample, 16, dtype=np.uint32).view(np.float32)
    else:
        values = sample.view(layout.float_type)
        if layout.float_type is np.float16:
            values = values.astype(np.float32)
    flat = values.reshape(-1)
    return float(np.dot(flat, flat)) * patterns.size / max(flat.size, 1)
