"""Uploads made of numpy arrays, for a base with the shapes of SmolLM2-135M."""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from registry.base_models.description import BaseDescription, TensorInfo, WeightFile
from workers.validation import DeclaredFile, Limits, Report, check_folder

HIDDEN, KV, INTER, LAYERS, VOCAB = 576, 192, 1536, 30, 49152
ROOT = "base_model.model.model."
BASE_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
DIMENSIONS = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN, KV),
    "self_attn.v_proj": (HIDDEN, KV),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (HIDDEN, INTER),
    "mlp.up_proj": (HIDDEN, INTER),
    "mlp.down_proj": (INTER, HIDDEN),
}
ATTENTION = tuple(name for name in DIMENSIONS if name.startswith("self_attn"))

Tensors = dict[str, Any]


def base(*, dtype: str = "BF16", tied: bool = True) -> BaseDescription:
    tensors = {
        "model.embed_tokens.weight": TensorInfo(dtype, (VOCAB, HIDDEN)),
        "model.norm.weight": TensorInfo(dtype, (HIDDEN,)),
    }
    for layer in range(LAYERS):
        tensors[f"model.layers.{layer}.input_layernorm.weight"] = TensorInfo(dtype, (HIDDEN,))
        for name, (inputs, outputs) in DIMENSIONS.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = TensorInfo(dtype, (outputs, inputs))
    if not tied:
        tensors["lm_head.weight"] = TensorInfo(dtype, (VOCAB, HIDDEN))
    return BaseDescription(
        architecture="LlamaForCausalLM",
        config_digest="1" * 64,
        tokenizer_digest="2" * 64,
        chat_template_digest="3" * 64,
        vocab_size=VOCAB,
        tied_embeddings=tied,
        tensors=tensors,
        weight_files={"model.safetensors": WeightFile(269_060_552, "4" * 64)},
    )


BASE = base()


def key(layer: int, module: str, half: str, root: str = ROOT) -> str:
    return f"{root}layers.{layer}.{module}.lora_{half}.weight"


def pairs(rank: int = 8, modules: tuple[str, ...] = ATTENTION, layers: int = 2, *, scale: float = 0.05) -> Tensors:
    random = np.random.default_rng(rank)
    tensors: Tensors = {}
    for layer in range(layers):
        for module in modules:
            inputs, outputs = DIMENSIONS[module]
            tensors[key(layer, module, "A")] = random.standard_normal((rank, inputs), dtype=np.float32) / 24
            tensors[key(layer, module, "B")] = random.standard_normal((outputs, rank), dtype=np.float32) * np.float32(
                scale
            )
    return tensors


def settings(**changes: Any) -> dict[str, Any]:
    content = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": BASE_NAME,
        "r": 8,
        "lora_alpha": 16,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
        "modules_to_save": None,
        "init_lora_weights": True,
        "use_dora": False,
        "use_rslora": False,
        "rank_pattern": {},
        "alpha_pattern": {},
    }
    merged = {**content, **changes}
    return {name: value for name, value in merged.items() if value is not MISSING}


MISSING = object()
_DTYPES = {"float32": "F32", "float16": "F16", "float64": "F64", "uint16": "BF16", "int8": "I8", "uint8": "F8_E4M3"}


def safetensors(tensors: Mapping[str, Any], *, metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file; uint16 arrays are bfloat16 patterns, uint8 arrays are 8-bit floats."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        dtype = _DTYPES[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return with_header(json.dumps(header).encode(), data)


def with_header(header: bytes, data: bytes = b"", *, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def bfloat16(array: Any) -> Any:
    return (np.asarray(array, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)


class Upload:
    """A folder as a pipeline would upload it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def weights(self, tensors: Mapping[str, Any] | bytes, name: str = "adapter_model.safetensors") -> "Upload":
        return self.file(name, tensors if isinstance(tensors, bytes) else safetensors(tensors))

    def config(self, content: Any = None, **changes: Any) -> "Upload":
        return self.file("adapter_config.json", json.dumps(settings(**changes) if content is None else content))

    def file(self, name: str, content: bytes | str = b"x") -> "Upload":
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def declared(self) -> tuple[DeclaredFile, ...]:
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return tuple(_declare(self.folder, path) for path in found)

    def check(self, *, declared: tuple[DeclaredFile, ...] | None = None, **options: Any) -> Report:
        limits = options.pop("limits", Limits(max_rank=16))
        chosen = options.pop("base", BASE)
        names = options.pop("base_names", (BASE_NAME,))
        return check_folder(self.folder, declared=declared, base=chosen, limits=limits, base_names=names, **options)


def _declare(folder: Path, path: Path) -> DeclaredFile:
    content = path.read_bytes()
    return DeclaredFile(path.relative_to(folder).as_posix(), len(content), hashlib.sha256(content).hexdigest())
