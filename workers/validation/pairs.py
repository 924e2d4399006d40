"""The tensors of an adapter in pairs: lora_A (rank, inputs) and lora_B (outputs, rank) of one module."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from registry.base_models.safetensors_header import TensorSpan

PREFIX: Final = "base_model.model."
_HALF: Final = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?:(?P<half>[AB])\.weight|embedding_(?P<row>[AB]))")
_MATRIX: Final = 2


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a pair: module without prefix, 'A' or 'B', and whether it is an embedding's."""

    module: str
    half: str
    is_embedding: bool


def parse_key(key: str) -> Half | None:
    """The half that `key` names, or None if it is no key of a plain LoRA as PEFT saves it."""
    found = _HALF.fullmatch(key)
    if found is None:
        return None
    return Half(found["module"], found["half"] or found["row"], is_embedding=found["row"] is not None)


@dataclass(slots=True)
class Pair:
    """The two halves of one module's LoRA, as far as the file has them."""

    a: TensorSpan | None = None
    b: TensorSpan | None = None
    is_embedding: bool = False


@dataclass(slots=True)
class Layout:
    """The pairs by module, and the keys that are part of none."""

    pairs: dict[str, Pair] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)


def lay_out(spans: Iterable[TensorSpan]) -> Layout:
    """Sort the tensors of a file into pairs."""
    layout = Layout()
    for span in sorted(spans, key=lambda span: span.name):
        half = parse_key(span.name)
        if half is None:
            layout.strays.append(span.name)
            continue
        pair = layout.pairs.setdefault(half.module, Pair(is_embedding=half.is_embedding))
        if half.half == "A":
            pair.a = span
        else:
            pair.b = span
    return layout


def true_rank(pair: Pair) -> int | None:
    """The rank that both halves agree on, or None."""
    if pair.a is None or pair.b is None or len(pair.a.shape) != _MATRIX or len(pair.b.shape) != _MATRIX:
        return None
    return pair.a.shape[0] if pair.a.shape[0] == pair.b.shape[1] > 0 else None
