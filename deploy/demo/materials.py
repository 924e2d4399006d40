"""The demo's base model and trained adapters, made at need: by processes of their own, so that torch is gone after."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from deploy.demo.made_folders import is_current
from deploy.demo.recipes import Recipe, adapter_folder, adapter_hash, base_folder, base_hash
from deploy.demo.voices import Voice

DEFAULT_CACHE = Path(".lorekeeper-cache")


class MaterialError(Exception):
    """The base model or an adapter could not be made; the message has the end of what its process said."""


def has_base_model(cache: Path) -> bool:
    """Tell whether the base model is in the cache, made from today's inputs."""
    return is_current(base_folder(cache), base_hash())


def has_adapter(cache: Path, voice: Voice) -> bool:
    """Tell whether the trained adapter of a voice is in the cache, made from today's inputs."""
    return is_current(adapter_folder(cache, voice), adapter_hash(voice, Recipe()))


def ensure_base_model(cache: Path) -> tuple[Path, float]:
    """Return the base model's folder and the seconds it took (0 if it was there). Raises MaterialError."""
    if has_base_model(cache):
        return base_folder(cache), 0.0
    return base_folder(cache), _run_module("deploy.demo.base_model", "--cache", str(cache))


def ensure_adapters(cache: Path, voices: Iterable[Voice]) -> tuple[dict[str, Path], float]:
    """Return the folders of the voices' adapters by name, and the seconds it took. Raises MaterialError."""
    wanted = list(voices)
    missing = [voice.name for voice in wanted if not has_adapter(cache, voice)]
    options = [word for name in missing for word in ("--voice", name)]
    seconds = _run_module("deploy.demo.train", "--cache", str(cache), *options) if missing else 0.0
    return {voice.name: adapter_folder(cache, voice) for voice in wanted}, seconds


def _run_module(module: str, *arguments: str) -> float:
    began = time.monotonic()
    # Threads that spin while they wait cost a busy machine far more than they gain: 200 s of training instead of 25.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise MaterialError(f"{module} failed: {(done.stderr or done.stdout).strip()[-1500:]}")
    return time.monotonic() - began
