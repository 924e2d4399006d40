"""A model folder on disk for the tiny base of ``tests.factories.adapters``: what an operator would register."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tests.factories.adapters import HIDDEN, LAYERS, VOCABULARY


def write_base_folder(folder: Path) -> Path:
    """Write config, tokenizer and weights of the tiny base; idempotent, the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer"}))
    random = np.random.default_rng(0)
    tensors = {"model.embed_tokens.weight": _weights(random, VOCABULARY)}
    for layer in range(LAYERS):
        for module in ("q_proj", "k_proj", "v_proj", "o_proj"):
            tensors[f"model.layers.{layer}.self_attn.{module}.weight"] = _weights(random, HIDDEN)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_adapter(folder: Path, files: dict[str, bytes]) -> Path:
    """Write the files of an adapter as a training run would leave them."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (folder / path).write_bytes(content)
    return folder


def _weights(random: np.random.Generator, rows: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    return random.standard_normal((rows, HIDDEN)).astype(np.float32)
