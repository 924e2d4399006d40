"""Postgres, Valkey, S3 and the web process of the embedded stack, with one adapter to push to and its uploader."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import psutil
from safetensors.numpy import save_file

from client.refs import PairRef
from client.sdk import LorekeeperClient
from deploy.embedded.plan import build_plan
from deploy.embedded.stack import Stack
from registry.base_models.description import describe_folder

if TYPE_CHECKING:
    from deploy.embedded.facts import StackFacts
    from deploy.embedded.specs import Spec

LINE = PairRef("bench", "line")
BASE, REVISION = "bench-base", "r1"
_NEEDED = frozenset({"migrate", "signing", "bootstrap", "web"})
_EMAIL = "ana@bench.example"
_READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A running stack, and a token that may push to `LINE`."""

    stack: Stack
    token: str

    @property
    def web_url(self) -> str:
        return self.stack.urls["web"]


def start(folder: Path) -> Stage:
    """Start it in `folder`; `stage.stack.stop()` ends it."""
    stack = Stack(folder / "stack", plan=_web_alone)
    stack.start()
    try:
        stack.wait_ready(seconds=_READY_S)
        return Stage(stack, _make_people(stack, folder / "base"))
    except BaseException:
        stack.stop()
        raise


class PeakMemory:
    """How much more memory the web process took at its worst than at the beginning: a context manager."""

    def __init__(self, stage: Stage) -> None:
        master = psutil.Process(stage.stack.pid_of("web"))
        self._processes = [master, *master.children(recursive=True)]
        self._before = 0
        self.extra_bytes = 0

    def __enter__(self) -> Self:
        for process in self._processes:
            # Sets the high-water mark back to what is in use now (Linux: proc_pid_clear_refs).
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        self._before = self._peak()
        return self

    def __exit__(self, *_error: object) -> None:
        self.extra_bytes = self._peak() - self._before

    def _peak(self) -> int:
        return sum(_high_water(process.pid) for process in self._processes)


def _high_water(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _web_alone(facts: StackFacts) -> tuple[Spec, ...]:
    return tuple(spec for spec in build_plan(facts) if spec.name in _NEEDED)


def _make_people(stack: Stack, base: Path) -> str:
    tokens = json.loads(stack.facts.secrets.bootstrap.read_text())
    with LorekeeperClient(stack.urls["web"], tokens["admin_token"]) as admin:
        admin.base_models.register(BASE, revision=REVISION, description=_describe_base(base), max_rank=16)
        admin.tenants.create(LINE.tenant)
        admin.tenants.add_member(LINE.tenant, email=_EMAIL, role="uploader", name="Ana")
        scopes = ["read", "upload"]
        made = admin.tenants.create_token(LINE.tenant, name="ana", kind="person", scopes=scopes, person_email=_EMAIL)
    token = str(made.token)
    with LorekeeperClient(stack.urls["web"], token) as ana:
        ana.adapters.create(LINE.tenant, LINE.name, base_model=BASE)
    return token


def _describe_base(folder: Path) -> dict[str, object]:
    """A base of one tensor: nothing is validated here, but an adapter belongs to a base."""
    folder.mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "vocab_size": 8}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    save_file({"model.embed_tokens.weight": np.zeros((8, 8), np.float32)}, folder / "model.safetensors")
    return describe_folder(folder).to_json()


def write_adapter(folder: Path, size: int, *, seed: int) -> Path:
    """A folder with a weights file of `size` random bytes, unlike that of any other seed."""
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    block = np.random.default_rng(seed).bytes(1 << 20)
    with (folder / "adapter_model.safetensors").open("wb") as file:
        for number in range(size >> 20):
            file.write(number.to_bytes(8, "big") + block[8:])
        file.flush()
        os.fsync(file.fileno())
    return folder
