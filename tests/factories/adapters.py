"""Small real adapters, as bytes: a two-layer base with hidden size 16, and LoRA files that fit it."""

import hashlib
import json
from typing import Any

import numpy as np
from safetensors.numpy import save

from registry.base_models.description import BaseDescription

HIDDEN = 16
LAYERS = 2
VOCABULARY = 64
MODULES = ("q_proj", "v_proj")
BASE_NAME = "tiny-base"


def tiny_description(*, seed: str = "tiny") -> BaseDescription:
    """A base revision with the tensors that ``adapter_files`` adapts; ``seed`` makes another revision of it."""
    tensors: dict[str, Any] = {"model.embed_tokens.weight": {"dtype": "F32", "shape": [VOCABULARY, HIDDEN]}}
    for layer in range(LAYERS):
        for module in ("q_proj", "k_proj", "v_proj", "o_proj"):
            name = f"model.layers.{layer}.self_attn.{module}.weight"
            tensors[name] = {"dtype": "F32", "shape": [HIDDEN, HIDDEN]}
    return BaseDescription.from_json(
        {
            "architecture": "LlamaForCausalLM",
            "config_digest": _digest(seed),
            "tokenizer_digest": _digest("tokenizer"),
            "chat_template_digest": None,
            "vocab_size": VOCABULARY,
            "tied_embeddings": True,
            "tensors": tensors,
            "weight_files": {"model.safetensors": {"size": 1000, "sha256": _digest(seed + "weights")}},
        }
    )


def adapter_files(*, rank: int = 4, seed: int = 0, **config: Any) -> dict[str, bytes]:
    """What PEFT would save: ``adapter_config.json`` and ``adapter_model.safetensors``. ``config`` overrides keys."""
    return {
        "adapter_config.json": json.dumps({**adapter_config(rank=rank), **config}).encode(),
        "adapter_model.safetensors": save(adapter_tensors(rank=rank, seed=seed), metadata={"format": "pt"}),
    }


def adapter_config(*, rank: int = 4) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": BASE_NAME,
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(MODULES),
        "modules_to_save": None,
        "use_dora": False,
        "use_rslora": False,
        "init_lora_weights": True,
        "inference_mode": True,
    }


def adapter_tensors(*, rank: int = 4, seed: int = 0) -> dict[str, "np.ndarray[Any, Any]"]:
    random = np.random.default_rng(seed)
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for layer in range(LAYERS):
        for module in MODULES:
            root = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            tensors[f"{root}.lora_A.weight"] = random.standard_normal((rank, HIDDEN)).astype(np.float32)
            tensors[f"{root}.lora_B.weight"] = random.standard_normal((HIDDEN, rank)).astype(np.float32) * 0.1
    return tensors


def manifest_of(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """The manifest that an uploader sends for ``files``."""
    return [
        {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in files.items()
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
