"""What an adapter's files do to a contract server's answers, and how its fake model reads a text."""

from __future__ import annotations

import array
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Weights:
    """A digest as the seed of what it says, its rank, and whether it is DoRA, all zero or holds a NaN."""

    digest: str
    rank: int
    zero: bool
    nan: bool
    dora: bool = False


class BadAdapter(Exception):
    """The files are no adapter; `missing` when there are none."""

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


def read_weights(folder: Path) -> Weights:
    """Read an adapter's folder as PEFT and safetensors would; the texts are theirs."""
    try:
        config = json.loads((folder / "adapter_config.json").read_bytes())
        blob = (folder / "adapter_model.safetensors").read_bytes()
    except OSError as error:
        raise BadAdapter(f"[Errno 2] No such file or directory: '{error.filename}'", missing=True) from error
    except ValueError as error:
        raise BadAdapter(f"Expecting value: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("r"), int):
        raise BadAdapter("PEFTHelper.__init__() missing 1 required positional argument: 'r'")
    zero, nan = _look_at_tensors(blob)
    return Weights(hashlib.sha256(blob).hexdigest(), config["r"], zero, nan, bool(config.get("use_dora")))


def _look_at_tensors(blob: bytes) -> tuple[bool, bool]:
    size = int.from_bytes(blob[:8], "little")
    try:
        header = json.loads(blob[8 : 8 + size])
        spans = {name: (t["dtype"], *t["data_offsets"]) for name, t in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadAdapter("Error while deserializing header: invalid JSON in header") from error
    data = memoryview(blob)[8 + size :]
    if any(stop > len(data) for _, _, stop in spans.values()):
        raise BadAdapter("Error while deserializing header: incomplete metadata, file not fully covered")
    zero = all(not _any_set(data[start:stop]) for name, (_, start, stop) in spans.items() if "lora_B" in name)
    return zero, any(_has_nan(dtype, data[start:stop]) for dtype, start, stop in spans.values())


def _any_set(data: memoryview) -> bool:
    """Whether any byte is more than the sign of a zero."""
    return bool(bytes(data).translate(None, b"\x00\x80"))


def _has_nan(dtype: str, data: memoryview) -> bool:
    if dtype == "F32":
        return any(value != value for value in array.array("f", bytes(data)))  # noqa: PLR0124  # only NaN differs from itself
    exponent, fraction = {"F16": (0x7C00, 0x03FF), "BF16": (0x7F80, 0x007F)}.get(dtype, (0, 0))
    words = array.array("H", bytes(data)) if exponent else ()
    return any(word & exponent == exponent and word & fraction for word in words)


def tokens_of(text: str) -> list[str]:
    return text.split() or [text]


def log_probability(weights: Weights | None, token: str, position: int) -> float:
    """How likely the base, or the adapter with these weights, finds the token at this place."""
    value = -1.0 - 4.0 * _fraction(token, position)
    if weights is None or weights.zero:
        return value
    return value - 0.2 - 0.6 * _fraction(weights.digest, position)


def _fraction(*parts: object) -> float:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big") / 2**32
