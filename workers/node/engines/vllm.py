"""vLLM, as version 0.32 behaves. The engine must run with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and one API server."""

import math
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import httpx

from workers.node.engines import texts
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.connection import LOAD_TIMEOUT_S, Connection, object_of, reason_of
from workers.node.engines.model_cards import adapters_in
from workers.node.engines.ports import Boot, Capabilities, EngineTier, LoadedAdapter, Reading
from workers.node.engines.prometheus import samples, total
from workers.node.engines.readings import echoed_reading, echoed_request
from workers.node.engines.residency import Residency
from workers.node.errors import EngineAwayError, EngineError, EngineRefusedError

READ_TIMEOUT_S = 60.0

# With the slash at its end the page takes a filter. Unfiltered it is never done growing: the metric of the adapters in
# use gets a series for each combination of names that was ever in one batch.
_STARTED = "/metrics/?name[]=process_start_time_seconds"
_IN_USE = "/metrics/?name[]=vllm:lora_requests_info&name[]=vllm:num_requests_waiting"
_STEPS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:kv_cache_usage_perc")
_PROGRESS = f"/metrics/?{'&'.join(f'name[]={name}' for name in _STEPS)}"
_RULES = (
    texts.away(r"EngineCore|EngineDead|engine is dead|timed out|cancelled"),
    texts.full(r"no free lora slots|number of adapters|GPU model slots|GPU LoRA slots"),
    # Said by its checks of configuration and files, which come before anything is put into a slot.
    texts.refused(r"max_lora_rank|not (?:yet )?support|deserializing|Expecting|PEFTHelper|No adapter found"),
)
_NOT_A_NUMBER = re.compile(r"Out of range float values", re.IGNORECASE)


class VllmEngine:
    """One vLLM server at `url`, which comes from the agent's own settings."""

    def __init__(
        self,
        url: str,
        *,
        residency_token: str = "",
        timeout_s: float = 5.0,
        load_timeout_s: float = LOAD_TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """With a token, residency is read back and unloads are real by our own plugin in the engine."""
        self._connection = Connection(url, timeout_s=timeout_s, transport=transport)
        self._load_timeout_s = load_timeout_s
        self._residency = Residency(self._connection, residency_token) if residency_token else None

    @property
    def capabilities(self) -> Capabilities:
        more = self._residency is not None
        return replace(CAPABILITIES["vllm"], reads_back=more, true_unload=more)

    def close(self) -> None:
        self._connection.close()

    def boot(self) -> Boot:
        """The start time of the API server's process is the id of its life."""
        page = self._connection.ask(_STARTED).text
        started = re.search(r"^process_start_time_seconds(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE)
        if started is None:
            raise EngineAwayError("the engine's /metrics has no process_start_time_seconds")
        return Boot(id=f"vllm-{started.group(1)}", healthy=self._connection.is_healthy())

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        """From GET /v1/models: names and paths, whatever is in memory."""
        return adapters_in(object_of(self._connection.ask("/v1/models")))

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:  # noqa: ARG002  # it has no way to pin
        """Synchronous in vLLM. The text of its error is all that tells why: nearly every bad adapter is a 500."""
        body = {"lora_name": name, "lora_path": str(path)}
        response = self._connection.send("POST", "/v1/load_lora_adapter", body, timeout_s=self._load_timeout_s)
        if response.status_code == HTTPStatus.BAD_REQUEST and "already been loaded" in response.text:
            return self._expect_root(name, path)
        if not response.is_success:
            raise _load_error(response)
        return None

    def unload(self, name: str) -> None:
        """Only forgets the name, but for the plugin; requests in flight still finish, from disk if need be."""
        if self._residency is not None and self._residency.unload(name):
            return
        response = self._connection.send("POST", "/v1/unload_lora_adapter", {"lora_name": name})
        if response.status_code == HTTPStatus.NOT_FOUND and "cannot be found" in response.text:
            return
        if not response.is_success:
            raise _error(response)

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        """An echoed completion of one token: the log-probabilities of the prompt's own tokens can be compared."""
        body = echoed_request(model, prompt)
        response = self._connection.send("POST", "/v1/completions", body, timeout_s=READ_TIMEOUT_S)
        if response.status_code == HTTPStatus.BAD_REQUEST and _NOT_A_NUMBER.search(response.text):
            return Reading(model=model, log_probabilities=(math.nan,))
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise EngineAwayError(f"the engine does not know {model}: {_reason(response)}")
        if not response.is_success:
            raise _error(response)
        return echoed_reading(object_of(response))

    def steady(self) -> AbstractContextManager[None]:
        """A load restarts nothing."""
        return nullcontext()

    def in_use(self) -> frozenset[str] | None:
        """The names in the newest series of `vllm:lora_requests_info`; None while requests wait.

        Measured on 0.32: the metric is set after each step of the engine, names a request from the end of its first
        step on (under both labels), and an aborted one no more after the next; a request that waits for its first
        step only counts in `vllm:num_requests_waiting`, which doesn't say for whom.
        """
        page = self._connection.ask(_IN_USE).text
        if total(page, "vllm:num_requests_waiting") > 0:
            return None
        newest = max(samples(page, "vllm:lora_requests_info"), key=lambda sample: sample.value, default=None)
        if newest is None:
            return frozenset()
        labels = (newest.labels.get(f"{what}_lora_adapters", "") for what in ("running", "waiting"))
        return frozenset(name for label in labels for name in label.split(",") if name)

    def tiers(self) -> Mapping[str, EngineTier] | None:
        """Not told by vLLM itself, but by the plugin; what is known by name and missing here is on disk alone."""
        return None if self._residency is None else self._residency.tiers()

    def progress(self) -> float:
        """Tokens read and written, and how full the KV cache is: a long prompt is counted when all of it was read.

        How many requests run or wait is no part of it, nor is it asked: after an abort that stays as it was.
        """
        page = self._connection.ask(_PROGRESS).text
        return sum(total(page, name) for name in _STEPS)

    def _expect_root(self, name: str, path: Path) -> None:
        roots = [adapter.root for adapter in self.list_loaded() if adapter.name == name]
        if roots != [str(path)]:
            raise EngineRefusedError(f"the engine has {name} from another folder: {', '.join(roots) or 'unknown'}")


def _load_error(response: httpx.Response) -> EngineError:
    if response.status_code == HTTPStatus.NOT_FOUND and "No adapter found" not in response.text:
        return EngineRefusedError("the engine can't load adapters: start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True")
    return _error(response)


def _error(response: httpx.Response) -> EngineError:
    return texts.error_of(response.status_code, _reason(response), _RULES)


def _reason(response: httpx.Response) -> str:
    return reason_of(response, "error.message")
