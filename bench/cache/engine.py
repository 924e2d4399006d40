"""vLLM as the stack starts it, on its own: for the arm that is driven by hand, and to learn each version's voice."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx

from bench.cache.asking import Answer, completion, stream
from bench.cache.base import BASE_NAME
from bench.cache.identity import Voice, Voices
from deploy.embedded.ports import free_port
from deploy.engine.vllm import VllmServer, VllmSpec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.cache.adapters import Built
    from bench.cache.plan import Plan
    from bench.cache.reads import Reads
    from deploy.embedded.child import Command

BASE = "base"


class BenchEngine(VllmServer):
    """A vLLM that notes what it reads."""

    def __init__(self, folder: Path, spec: VllmSpec, reads: Reads) -> None:
        """Keep log and lock in `folder`."""
        super().__init__(folder, spec)
        self._reads = reads

    def command(self) -> Command:
        """Return what to run."""
        command = super().command()
        return replace(command, environment={**command.environment, **self._reads.environment})


def engine_of(folder: Path, python: Path, base: Path, plan: Plan, reads: Reads) -> BenchEngine:
    """An engine with the plan's slots, not yet started."""
    spec = VllmSpec(
        python=python,
        model=base,
        port=free_port(),
        served_name=BASE_NAME,
        gpu_slots=plan.gpu_slots,
        cpu_slots=plan.places,
        max_rank=max(plan.ranks),
    )
    return BenchEngine(folder, spec, reads)


async def learn_voices(url: str, versions: Iterable[Built], plan: Plan) -> Voices:
    """Load each version alone, ask it, and unload it again; the base is asked too."""
    known = {}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        known[BASE] = await _voice(http, url, BASE_NAME, plan)
        for version in versions:
            name = f"learn-{version.number}"
            loaded = {"lora_name": name, "lora_path": str(version.folder)}
            (await http.post(f"{url}/v1/load_lora_adapter", json=loaded)).raise_for_status()
            known[version.label] = await _voice(http, url, name, plan)
            (await http.post(f"{url}/v1/unload_lora_adapter", json={"lora_name": name})).raise_for_status()
    return Voices(known)


async def _voice(http: httpx.AsyncClient, url: str, model: str, plan: Plan) -> Voice:
    answer = Answer(0, 0.0)
    await stream(http, url, completion(model, plan.tokens), answer, began=time.monotonic())
    if not answer.is_answered:
        raise RuntimeError(f"{model} gave no answer: {answer.status} {answer.reason}")
    return answer.voice
