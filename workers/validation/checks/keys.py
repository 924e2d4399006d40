"""What the keys of adapter tensors give away about how they came to be, when they name nothing in the base."""

import re
from typing import Final

from workers.validation.modules import BaseModules
from workers.validation.report import shown

PREFIX: Final = "base_model.model."
_LORA_TAIL: Final = re.compile(r"\.lora_(?:[AB]\.weight|embedding_[AB])$")
_WRAPPERS: Final = {
    "_orig_mod": "torch.compile",
    "module": "DistributedDataParallel or DeepSpeed",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "language_model": "a multimodal wrapper",
    "base_layer": "a second PEFT wrap (base_layer)",
    "base_model": "a second PEFT wrap",
}
_OTHER_TYPES: Final = r"hada_|lokr_|ia3_|vera_|[bh]?oft_|randlora_|prompt_embeddings|lora_E$"
# What a key shows: (code, pattern, what it is and what to do); the first that matches counts.
_FOREIGN: Final[tuple[tuple[str, "re.Pattern[str]", str], ...]] = tuple(
    (code, re.compile(pattern), advice)
    for code, pattern, advice in (
        ("dora", r"lora_magnitude_vector", "is a DoRA magnitude, which engines can't serve: merge it"),
        ("tokens", r"trainable_tokens|token_adapter", "trains single token embeddings, which engines can't serve"),
        ("modules_to_save", r"modules_to_save", "is a whole layer of modules_to_save: train without it"),
        ("variant", r"lora_diag", "belongs to a KaSA adapter, which engines can't serve"),
        ("bias", r"(?:^|\.)bias$|lora_[AB]\.bias$", "is a bias, which engines can't serve: train with bias 'none'"),
        ("adapter_name", r"\.lora_(?:[AB]|embedding_[AB])\.[^.]+(?:\.weight)?$", "carries an adapter name ('default')"),
        ("kohya", r"^lora_(?:unet|te\d?)_|\.lora_(?:down|up)\b|\.alpha$|_lora\.", "is kohya's or diffusers' name"),
        ("mlx", r"lora_[ab]\b", "is an MLX or torchtune name: convert the adapter to PEFT's names"),
        ("other_type", _OTHER_TYPES, "belongs to another adapter type than LoRA"),
        (
            "embeddings",
            r"(?:embed_tokens|lm_head|wte)(?:\.base_layer)?\.weight$",
            "is a whole embedding of the vocabulary, which engines drop",
        ),
        ("base_weight", r"\.weight$", "is a weight of the base, not of an adapter: save only the adapter"),
    )
)


def explain_key(key: str) -> tuple[str, str]:
    """Code and sentence for a key that `parse_key` doesn't know."""
    if _LORA_TAIL.search(key) and not key.startswith(PREFIX):
        return "prefix", f"the key {shown(key)} doesn't begin with the prefix {PREFIX}: save it with save_pretrained"
    for code, pattern, advice in _FOREIGN:
        if pattern.search(key):
            return code, f"the key {shown(key)} {advice}"
    return "key", f"the key {shown(key)} is not one that PEFT gives to a LoRA: save it with save_pretrained"


def explain_module(name: str, base: BaseModules) -> tuple[str, str]:
    """Code and sentence for a module that the base doesn't have."""
    said = f"the key of module {shown(name)}"
    unwrapped = _unwrapped(name, base)
    if unwrapped:
        wrapper, inner = unwrapped
        return "wrapper", f"{said} carries the prefix of {wrapper}: the base calls it {shown(inner)}; save it unwrapped"
    if base.is_beyond_layers(name):
        return "layer", f"{said} names a layer that doesn't exist: the base has {base.layers} layers, from 0"
    if f"model.{name}" in base.modules or base.is_beyond_layers(f"model.{name}"):
        return "prefix", f"{said} lacks the prefix 'model.' of the base's names: save the whole model's adapter"
    if ".experts" in name:
        return "experts", f"{said} puts LoRA on expert weights, but the base has no such module"
    if name in base.other_names:
        return "no_matrix", f"{said} is no linear layer or embedding in the base: engines can't put a LoRA there"
    return "module", f"{said} names no module of the base: the adapter belongs to another base or layout"


def _unwrapped(name: str, base: BaseModules) -> tuple[str, str] | None:
    """The wrapper whose mark `name` bears, and the base's name for the module, if taking marks away finds it."""
    parts = name.split(".")
    marks = [part for part in parts if part in _WRAPPERS]
    if not marks:
        return None
    bare = [part for part in parts if part not in _WRAPPERS]
    while bare[:2] == ["model", "model"]:
        bare = bare[1:]
    for candidate in (".".join(bare), ".".join(["model", *bare])):
        if candidate in base.modules or base.is_beyond_layers(candidate):
            return _WRAPPERS[marks[0]], candidate
    return None
