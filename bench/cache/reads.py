"""What an engine reads from its disk, in its own words: a plugin of vLLM's that notes each adapter it reads.

vLLM reads an adapter when it is told to load it, and again whenever a request names one that it has dropped. Only the
engine knows of the second kind, so that this module is put into it: `vllm.general_plugins` are called in each of its
processes. It changes nothing but that each read is written down.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAME = "engine_reads"
_FILE = "ENGINE_READS_FILE"
_WEIGHTS = "adapter_model.safetensors"


@dataclass(frozen=True, slots=True)
class Read:
    """At this wall-clock time an adapter of so many bytes was read from this folder."""

    at: float
    folder: str
    size: int


class Reads:
    """The notes of one engine's life, and the environment in which it makes them."""

    def __init__(self, folder: Path) -> None:
        """Put the plugin into `folder`, where the engine's Python finds it as an installed distribution."""
        self._file = folder / "reads.jsonl"
        self._plugins = folder / "plugins"
        facts = self._plugins / f"{_NAME}-1.0.dist-info"
        facts.mkdir(parents=True)
        shutil.copyfile(__file__, self._plugins / f"{_NAME}.py")
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[vllm.general_plugins]\n{_NAME} = {_NAME}:register\n")

    @property
    def environment(self) -> dict[str, str]:
        """What the engine is started with beside its own."""
        return {"PYTHONPATH": str(self._plugins), "VLLM_PLUGINS": _NAME, _FILE: str(self._file)}

    def since(self, moment: float) -> list[Read]:
        """What was read after this wall-clock time."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [read for read in (Read(**json.loads(line)) for line in lines) if read.at >= moment]


def register() -> None:
    """Called by vLLM in each of its processes: note what its worker reads from now on."""
    manager: Any = importlib.import_module("vllm.lora.worker_manager").WorkerLoRAManager
    read = manager._load_adapter  # noqa: SLF001  there is no hook for it
    if getattr(read, "is_noted", False):
        return

    def noted(self: Any, lora_request: Any) -> Any:  # noqa: ANN401  vLLM's own types aren't there
        adapter = read(self, lora_request)
        folder = Path(lora_request.lora_path)
        line = {"at": time.time(), "folder": str(folder), "size": (folder / _WEIGHTS).stat().st_size}
        with Path(os.environ[_FILE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return adapter

    noted.is_noted = True  # type: ignore[attr-defined]
    manager._load_adapter = noted  # noqa: SLF001  as above
