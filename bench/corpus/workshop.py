"""Where one upload is made: its folder, the base's shapes, and the ways to put files there."""

import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from registry.base_models.modules import BaseModules
from registry.base_models.safetensors_header import read_header
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE

Array = npt.NDArray[Any]
Tensors = dict[str, Array]

PREFIX: Final = "base_model.model."
ROOT: Final = f"{PREFIX}model."
BASE_NAME: Final = "HuggingFaceTB/SmolLM2-135M-Instruct"
ATTENTION: Final = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
MLP: Final = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
DROPPED: Final = object()
_DTYPES: Final = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "uint16": "BF16",
    "int8": "I8",
    "uint8": "F8_E4M3",
}


class Workshop:
    """Makes one upload in an empty folder."""

    def __init__(self, folder: Path, base_folder: Path, base: BaseModules, *, seed: int) -> None:
        """Take the folder, the base's own folder and modules, and the seed of all numbers."""
        self.folder = folder
        self.base_folder = base_folder
        self.base = base
        self.random = np.random.default_rng(seed)

    @property
    def hidden(self) -> int:
        """The base's width."""
        return self.width("self_attn.q_proj")[0]

    def width(self, module: str) -> tuple[int, int]:
        """Inputs and outputs of a module of every layer, such as `mlp.up_proj`."""
        found = self.base.modules[f"model.layers.0.{module}"]
        return found.inputs, found.outputs

    def pair(self, name: str, inputs: int, outputs: int, rank: int = 8, *, strength: float = 0.06) -> Tensors:
        """lora_A as initialised and lora_B as trained to some effect, for the module `name` as PEFT would name it."""
        a = self.random.standard_normal((rank, inputs), dtype=np.float32) / np.float32(inputs**0.5)
        b = self.random.standard_normal((outputs, rank), dtype=np.float32) * np.float32(strength)
        return {f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b}

    def lora(
        self,
        rank: int = 8,
        modules: Iterable[str] = ATTENTION,
        layers: Iterable[int] | None = None,
        *,
        strength: float = 0.06,
    ) -> Tensors:
        """The tensors of an adapter on `modules` of `layers` (all of them without)."""
        tensors: Tensors = {}
        for layer in range(self.base.layers) if layers is None else layers:
            for module in modules:
                tensors |= self.pair(f"{ROOT}layers.{layer}.{module}", *self.width(module), rank, strength=strength)
        return tensors

    def config(self, **changes: object) -> None:
        """Write adapter_config.json as PEFT does, with changes; a value of DROPPED leaves the setting out."""
        content: dict[str, object] = {
            "alpha_pattern": {}, "auto_mapping": None, "base_model_name_or_path": BASE_NAME, "bias": "none",
            "fan_in_fan_out": False, "inference_mode": True, "init_lora_weights": True, "layer_replication": None,
            "layers_pattern": None, "layers_to_transform": None, "loftq_config": {}, "lora_alpha": 16,
            "lora_bias": False, "lora_dropout": 0.05, "megatron_config": None, "megatron_core": "megatron.core",
            "modules_to_save": None, "peft_type": "LORA", "r": 8, "rank_pattern": {}, "revision": None,
            "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], "task_type": "CAUSAL_LM",
            "use_dora": False, "use_rslora": False,
        }  # fmt: skip
        merged = {key: value for key, value in {**content, **changes}.items() if value is not DROPPED}
        self.file(CONFIG_FILE, json.dumps(merged, indent=2))

    def weights(self, tensors: Mapping[str, Array], name: str = WEIGHTS_FILE) -> None:
        """Write a safetensors file; uint16 arrays are bfloat16 patterns, uint8 arrays 8-bit floats."""
        self.file(name, safetensors(tensors))

    def embedding(self) -> Array:
        """The base's own embedding, as bfloat16 patterns or in single precision."""
        path = self.base_folder / "model.safetensors"
        with path.open("rb") as file:
            header = read_header(file.fileno(), path.stat().st_size)
            span = next(span for span in header.tensors if span.name == "model.embed_tokens.weight")
            file.seek(header.data_start + span.begin)
            content = file.read(span.end - span.begin)
        return np.frombuffer(content, np.uint16 if span.dtype == "BF16" else np.float32).reshape(span.shape)

    def sound(self, **changes: object) -> None:
        """Write a whole adapter without a fault, but for changes of its config."""
        self.weights(self.lora())
        self.config(**changes)

    def file(self, name: str, content: bytes | str = b"") -> Path:
        """Write a file, with the folders it needs."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def zip(self, *odd: tuple[str | zipfile.ZipInfo, bytes]) -> None:
        """Put what is there, and odd members, into upload.zip, which is then all there is."""
        files = self._taken()
        with zipfile.ZipFile(self.folder / "upload.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (*files.items(), *odd):
                archive.writestr(name, content)

    def tar(self, *odd: tarfile.TarInfo, name: str = "upload.tar") -> None:
        """Put what is there, and odd members, into a tar file, which is then all there is; `.gz` packs it."""
        files = self._taken()
        with tarfile.open(self.folder / name, "w:gz" if name.endswith("gz") else "w") as archive:
            for path, content in files.items():
                info = tarfile.TarInfo(path)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            for info in odd:
                archive.addfile(info)

    def _taken(self) -> dict[str, bytes]:
        files = {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}
        for name in files:
            (self.folder / name).unlink()
        return files


def safetensors(tensors: Mapping[str, Array]) -> bytes:
    """The bytes of a safetensors file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    blocks, end = list[bytes](), 0
    for name, array in tensors.items():
        block = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": _DTYPES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [end, end + len(block)],
        }
        blocks.append(block)
        end += len(block)
    return with_header(header, b"".join(blocks))


def with_header(header: Mapping[str, object] | bytes, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A file with this header before its data; `length` is what the file says of the header's length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    if not isinstance(header, bytes):
        text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def bfloat16(array: Array) -> Array:
    """The patterns of the values in bfloat16, cut off."""
    return (np.asarray(array, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)


def renamed(tensors: Mapping[str, Array], old: str, new: str) -> Tensors:
    """The same tensors under other keys."""
    return {name.replace(old, new): array for name, array in tensors.items()}
