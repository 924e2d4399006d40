"""What the keys of adapter tensors give away about how they came to be, when they name nothing in the base."""

import re
from collections.abc import Sequence
from typing import Final

from registry.base_models.modules import BaseModules
from workers.validation.pairs import PREFIX
from workers.validation.report import shown

_LORA_TAIL: Final = re.compile(r"\.lora_(?:[AB]\.weight|embedding_[AB])$")
_WRAPPERS: Final = {
    "_orig_mod": "torch.compile",
    "module": "DistributedDataParallel (DDP) or DeepSpeed",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_forward_module": "Lightning or DeepSpeed",
    "pretrained_model": "a value-head wrapper",
    "language_model": "a multimodal wrapper",
    "base_layer": "a second PEFT wrap (base_layer)",
    "base_model": "a second PEFT wrap",
    "default": "an adapter name ('default')",
}
# Layers that some bases keep in one piece and others apart: (the one piece, its parts).
_FUSED: Final = (
    (
        frozenset({"qkv_proj", "query_key_value", "W_pack", "linear_qkv", "c_attn", "Wqkv"}),
        ("q_proj", "k_proj", "v_proj"),
    ),
    (frozenset({"gate_up_proj", "linear_fc1"}), ("gate_proj", "up_proj")),
)
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
        (
            "kohya",
            r"^lora_(?:unet|te\d?|transformer|model)_|\.lora_(?:down|up)\b|\.alpha$",
            "is a kohya (sd-scripts) name: convert the adapter to PEFT's names",
        ),
        (
            "diffusers",
            r"_lora\.|lora_linear_layer|\.processor\.",
            "is a diffusers name: convert the adapter to PEFT's names",
        ),
        ("flat", r"_flat_param", "is a flat parameter of FSDP: gather the full state before saving"),
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
        return _explain_start(key)
    for code, pattern, advice in _FOREIGN:
        if pattern.search(key):
            return code, f"the key {shown(key)} {advice}"
    return "key", f"the key {shown(key)} is not one that PEFT gives to a LoRA: save it with save_pretrained"


def _explain_start(key: str) -> tuple[str, str]:
    """A LoRA's key that doesn't begin as PEFT's keys do: a wrapper stands before it, or the beginning was cut off."""
    parts = key.split(".")
    marks = [part for part in parts[: parts.index("base_model")] if part in _WRAPPERS] if "base_model" in parts else []
    if marks:
        wrapper = _named(marks)
        return "wrapper", f"the key {shown(key)} carries the prefix of {wrapper}: save the model that is inside of it"
    return "prefix", f"the key {shown(key)} doesn't begin with the prefix {PREFIX}: save it with save_pretrained"


def explain_module(name: str, base: BaseModules) -> tuple[str, str]:
    """Code and sentence for a module that the base doesn't have."""
    said = f"the key of module {shown(name)}"
    unwrapped = _unwrapped(name, base)
    if unwrapped:
        wrapper, inner = unwrapped
        return "wrapper", f"{said} carries the prefix of {wrapper}: the base calls it {shown(inner)}; save it unwrapped"
    if base.is_beyond_layers(name):
        return "layer", f"{said} names a layer that doesn't exist: the base has {base.layers} layers, from 0"
    if name in base.other_names:
        return "no_matrix", f"{said} is no linear layer or embedding in the base: engines can't put a LoRA there"
    code, sentence = _misnamed(name, base) or ("module", "names no module of the base: another base or layout")
    return code, f"{said} {sentence}"


def _misnamed(name: str, base: BaseModules) -> tuple[str, str] | None:
    """Code and end of a sentence for a module whose name is a slip away from one of the base's."""
    if _is_known(f"model.{name}", base):
        return "prefix", "lacks the prefix 'model.' of the base's names: save the whole model's adapter"
    if _is_known(name.removeprefix("model."), base):
        return "prefix", "has the prefix 'model.' once too often: save the adapter of the base itself"
    parts = _parts_of_fused(name, base)
    if parts:
        return "fused", f"is one fused layer, the base has {', '.join(parts)} apart: split its weights"
    if ".experts" in name:
        return "experts", "puts LoRA on expert weights, but the base has no such module"
    return None


def _is_known(name: str, base: BaseModules) -> bool:
    return name in base.modules or base.is_beyond_layers(name)


def _parts_of_fused(name: str, base: BaseModules) -> tuple[str, ...]:
    """What the base has instead of the one layer `name`; empty if it has no such parts."""
    parent, _, last = name.rpartition(".")
    for fused, parts in _FUSED:
        if last in fused and all(_is_known(f"{parent}.{part}", base) for part in parts):
            return parts
    return ()


def _unwrapped(name: str, base: BaseModules) -> tuple[str, str] | None:
    """The wrappers whose marks `name` bears, and the base's name for the module, if taking marks away finds it."""
    parts = name.split(".")
    marks = [part for part in parts if part in _WRAPPERS]
    if not marks:
        return None
    bare = [part for part in parts if part not in _WRAPPERS]
    while bare[:2] == ["model", "model"]:
        bare = bare[1:]
    for candidate in (".".join(bare), ".".join(["model", *bare])):
        if _is_known(candidate, base):
            return _named(marks), candidate
    return None


def _named(marks: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(_WRAPPERS[mark] for mark in marks))
