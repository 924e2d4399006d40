"""The modules of the base that can bear a LoRA, with their dimensions, as its tensors tell them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from registry.base_models.description import BaseDescription

HEAD: Final = "lm_head"
EMBEDDINGS: Final = frozenset({"embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embed_in"})
_MATRIX: Final = 2
_NUMBER: Final = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True, slots=True)
class Module:
    """`inputs` and `outputs` are widths; of an embedding, `inputs` is its vocabulary."""

    inputs: int
    outputs: int
    is_embedding: bool = False


@dataclass(frozen=True, slots=True)
class BaseModules:
    """All modules of a base by full name, and what is needed to say why a name is none of them."""

    modules: Mapping[str, Module]
    other_names: frozenset[str]
    shapes_of_names: frozenset[str]
    layers: int
    is_head_tied: bool

    @property
    def outputs(self) -> frozenset[str]:
        """Heads and embeddings: what `all-linear` leaves out."""
        return frozenset(name for name, module in self.modules.items() if module.is_embedding or name == HEAD)

    def is_beyond_layers(self, name: str) -> bool:
        """Whether `name` would be a module if its layer numbers were others."""
        return name not in self.modules and template(name) in self.shapes_of_names


def base_modules(base: BaseDescription) -> BaseModules:
    """Read the modules from the base's tensors; a tied head counts as a module of the embedding's shape."""
    modules: dict[str, Module] = {}
    others: set[str] = set()
    for tensor, info in base.tensors.items():
        name, _, last = tensor.rpartition(".")
        if last != "weight" or len(info.shape) != _MATRIX:
            others.add(name)
        elif name.rpartition(".")[2] in EMBEDDINGS:
            modules[name] = Module(inputs=info.shape[0], outputs=info.shape[1], is_embedding=True)
        else:
            modules[name] = Module(inputs=info.shape[1], outputs=info.shape[0])
    embedding = next((module for module in modules.values() if module.is_embedding), None)
    if base.tied_embeddings and embedding:
        modules.setdefault(HEAD, Module(inputs=embedding.outputs, outputs=embedding.inputs))
    return BaseModules(
        modules=modules,
        other_names=frozenset(others),
        shapes_of_names=frozenset(map(template, modules)),
        layers=1 + max((int(number) for name in modules for number in _NUMBER.findall(name)[:1]), default=-1),
        is_head_tied=base.tied_embeddings,
    )


def template(name: str) -> str:
    """The name with its numbers taken out: the same for a module of every layer."""
    return _NUMBER.sub("#", name)
