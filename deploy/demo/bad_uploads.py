"""Three uploads that a registry must refuse, made from a good one: a pickle, a NaN, and another base model's weights.

All three were accepted by a real engine or by a loader at some time: the pickle would run code, one NaN poisons every
adapter of a vLLM server until it is restarted, and a wrong base answers nonsense under the adapter's name.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
# An empty dict, pickled: it does nothing, but nobody can know that without running it.
HARMLESS_PICKLE = b"\x80\x04}\x94."
# SmolLM2-360M instead of 135M: same architecture and names, other sizes.
OTHER_HIDDEN, OTHER_KV, OTHER_LAYERS = 960, 320, 32


@dataclass(frozen=True, slots=True)
class BadUpload:
    """A kind of upload, and a word that the reason of its refusal must contain (any case)."""

    name: str
    told_as: str
    make: Callable[[Path, Path], None]
    reason_names: tuple[str, ...]


def make_pickle(good: Path, folder: Path) -> None:
    """Put the weights into `folder` as PEFT did before safetensors: a file that is unpickled when it is loaded."""
    shutil.copyfile(good / CONFIG, folder / CONFIG)
    (folder / "adapter_model.bin").write_bytes(HARMLESS_PICKLE)


def make_nan(good: Path, folder: Path) -> None:
    """Put the good weights into `folder` with one value of one tensor replaced by NaN."""
    shutil.copyfile(good / CONFIG, folder / CONFIG)
    tensors = load_file(good / WEIGHTS)
    name = max(tensors)
    spoiled = tensors[name].copy()
    spoiled.flat[0] = np.nan
    save_file({**tensors, name: spoiled}, folder / WEIGHTS, metadata={"format": "pt"})


def make_wrong_base(good: Path, folder: Path) -> None:
    """Put random weights of the good adapter's rank and modules into `folder`, in the sizes of a larger model."""
    shutil.copyfile(good / CONFIG, folder / CONFIG)
    config = json.loads((good / CONFIG).read_text(encoding="utf-8"))
    random = np.random.default_rng(seed=7)
    tensors = {}
    for layer in range(OTHER_LAYERS):
        for module in sorted(config["target_modules"]):
            width = OTHER_KV if module in {"k_proj", "v_proj"} else OTHER_HIDDEN
            key = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            tensors[f"{key}.lora_A.weight"] = random.standard_normal((config["r"], OTHER_HIDDEN), dtype=np.float32)
            tensors[f"{key}.lora_B.weight"] = random.standard_normal((width, config["r"]), dtype=np.float32)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


BAD_UPLOADS = (
    BadUpload("pickle", "weights as a pickle", make_pickle, ("pickle", "adapter_model.bin")),
    BadUpload("nan", "one NaN among the weights", make_nan, ("nan", "finite")),
    BadUpload("wrong-base", "weights of another base model", make_wrong_base, ("shape", "dimension", "base")),
)


def make_bad_upload(bad: BadUpload, *, good: Path, folder: Path) -> Path:
    """Make the upload anew in `folder` from the trained adapter in `good`, and return `folder`."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    bad.make(good, folder)
    return folder
