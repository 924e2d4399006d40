"""A real vLLM that every adapter is tried on, one request at a time, started anew whenever one has spoiled it.

It has one slot: an adapter does more harm in the last slot than in another (see the engine table on LoRA on the head),
and with several, the one it comes to lie in depends on the cases before it.
"""

import math
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx

from deploy.embedded.ports import free_port
from deploy.engine.vllm import VllmServer, VllmSpec
from workers.node.engines.vllm import VllmEngine
from workers.node.errors import EngineAwayError, EngineError

TEXT: Final = (
    "The harbour was quiet when the first boats came in. A clerk counted the crates, wrote the numbers into a ledger "
    "and asked the captain whether the storm had damaged anything on the way."
)
# An idle vLLM repeats itself exactly; real updates move a token by tenths of a nat.
ACTS_FROM: Final = 0.05
_SAME_TO: Final = 0.01
_LOAD_SECONDS: Final = 60.0
_BASE: Final = "base"
_MAX_SAID: Final = 110

Values = tuple[float, ...]


class Fate(StrEnum):
    """What became of an adapter on the engine."""

    REFUSED = "refused"
    ACTS = "acts"
    SILENT = "answers like the base"
    LEAKS = "acts on the base too"
    POISONS = "poisons the engine"
    HANGS = "hangs the engine"
    KILLS = "ends the engine"


# What only another start makes good.
_SPOILS: Final = frozenset({Fate.LEAKS, Fate.POISONS, Fate.HANGS, Fate.KILLS})


@dataclass(frozen=True, slots=True)
class Trial:
    """One adapter on the engine: `difference` from the base, mean over the text's tokens, in nats."""

    fate: Fate
    said: str = ""
    difference: float | None = None
    values: Values = ()


class LiveEngine(AbstractContextManager["LiveEngine"]):
    """vLLM as the node agents start it, on the base model folder given."""

    def __init__(self, folder: Path, python: Path, model: Path, *, max_rank: int) -> None:
        """Keep log and lock in `folder`."""
        spec = VllmSpec(
            python=python,
            model=model.resolve(),
            port=free_port(),
            served_name=_BASE,
            gpu_slots=1,
            max_rank=max_rank,
        )
        self._server = VllmServer(folder, spec)
        self._client = VllmEngine(spec.url)
        self._loads = httpx.Client(base_url=spec.url, timeout=_LOAD_SECONDS, trust_env=False)
        self.base: Values = ()
        self.starts = 0

    def __enter__(self) -> Self:
        """Start it."""
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._client.close()
        self._loads.close()
        self._server.stop()

    def try_adapter(self, name: str, path: Path) -> Trial:
        """Load the adapter in `path`, read the text with it and with the base, and forget it."""
        try:
            trial = self._tried(name, path)
        except httpx.TimeoutException:
            trial = Trial(Fate.HANGS, f"no answer in {_LOAD_SECONDS:.0f} s")
        except (EngineAwayError, httpx.TransportError):
            trial = Trial(Fate.KILLS, "the server went away")
        except EngineError as error:
            trial = Trial(Fate.REFUSED, f"loads; answers {error}"[:_MAX_SAID])
        if trial.fate not in _SPOILS:
            trial = self._with_aftermath(trial)
        if trial.fate in _SPOILS:
            self._start()
        return trial

    def _tried(self, name: str, path: Path) -> Trial:
        answer = self._loads.post("/v1/load_lora_adapter", json={"lora_name": name, "lora_path": str(path)})
        if not answer.is_success:
            return Trial(Fate.REFUSED, f"{answer.status_code} {_said(answer)}")
        try:
            values = self._read(name)
            if not _are_numbers(values):
                return Trial(Fate.POISONS, "loads; answers NaN")
            difference = distance(values, self.base)
            fate = Fate.ACTS if difference >= ACTS_FROM else Fate.SILENT
            return Trial(fate, "loads", difference, values)
        finally:
            if self._server.running:
                self._client.unload(name)

    def _with_aftermath(self, trial: Trial) -> Trial:
        """The trial as it is in the light of what the base answers afterwards."""
        try:
            values = self._read(_BASE)
        except EngineError as error:
            return Trial(Fate.POISONS, f"{trial.said}; afterwards the base answers {error}"[:_MAX_SAID])
        if not _are_numbers(values):
            return Trial(Fate.POISONS, f"{trial.said}; afterwards the base answers NaN")
        off = distance(values, self.base)
        if off < _SAME_TO:
            return trial
        said = f"{trial.said}; afterwards the base is {off:.2f} nats off"
        return Trial(Fate.LEAKS, said, trial.difference, trial.values)

    def _read(self, model: str) -> Values:
        return self._client.read_prompt(model=model, prompt=TEXT).log_probabilities

    def _start(self) -> None:
        if self._server.running:
            self._server.stop()
        self._server.start()
        self.starts += 1
        self.base = self._read(_BASE)


def distance(values: Sequence[float], others: Sequence[float]) -> float:
    """Mean absolute difference of two readings of one text, in nats."""
    return statistics.fmean(abs(one - other) for one, other in zip(values, others, strict=True))


def _are_numbers(values: Values) -> bool:
    return bool(values) and all(map(math.isfinite, values))


def _said(answer: httpx.Response) -> str:
    """The part of vLLM's error that says why, without what stands before and behind it in every one."""
    try:
        text = str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = answer.text
    _, found, reason = text.partition("Worker failed with error '")
    reason = (reason if found else text).split("', please check")[0]
    return " ".join(reason.split())[:_MAX_SAID]
