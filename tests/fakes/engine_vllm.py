"""A contract server of vLLM's adapter endpoints, faithful to what version 0.32 does, with switches for its faults.

In a test: ``with FakeEngineServer(base="base") as engine`` (a thread; `url`, `state.restart()`, `faults`, `alive`).
As a process: ``python -m tests.fakes.engine_vllm --port 8100 --base base``.

Kept from the real engine, each measured on version 0.32.0: a load is synchronous and fills a CPU and a GPU LRU; an
unload only forgets the name; a bad adapter is 500 with the reason in the text; a duplicate is 400 and a missing path
404; an overflow of the CPU LRU evicts silently, the next request reads the path again and the server exits when the
files are gone; one request to an adapter with NaN weights poisons every later answer, the base's too, until a restart
while /health stays 200; /metrics names the adapters that run after each step, in one more series for each combination
of names, and counts those that wait without their names.
"""

import argparse
import asyncio
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvicorn

from tests.fakes.serving import Answer, EngineDiedError, FakeApp, FakeServer, Handler, Message, Refusal
from tests.fakes.weights import BadAdapter, Weights, log_probability, read_weights, tokens_of


@dataclass(slots=True)
class Faults:
    """Switches; all off is an engine in good health. Delays are seconds."""

    load_delay_s: float = 0.0
    token_delay_s: float = 0.0
    load_error: str | None = None
    nan_logprobs: bool = False
    ignores_adapter: bool = False
    wrong_model: str | None = None
    unhealthy: bool = False
    waiting: int = 0
    plugin_token: str = ""
    broken_generation: bool = False
    exits_when_files_are_gone: bool = True


class EngineError(Refusal):
    """An error answer in vLLM's form."""

    def __init__(self, status: HTTPStatus, kind: str, message: str, param: str | None = None) -> None:
        body = {"error": {"message": message, "type": kind, "param": param, "code": int(status)}}
        super().__init__(Answer(status, body))


@dataclass(slots=True)
class State:
    """What the engine knows; cleared by a restart, but for the counters that tests look at."""

    base: str
    cpu_slots: int = 8
    gpu_slots: int = 4
    max_rank: int = 64
    started: float = field(default_factory=lambda: round(time.time(), 2))
    names: dict[str, tuple[int, str]] = field(default_factory=dict)
    cpu: OrderedDict[int, Weights] = field(default_factory=OrderedDict)
    gpu: OrderedDict[int, None] = field(default_factory=OrderedDict)
    poisoned: bool = False
    next_id: int = 1
    in_flight: list[str] = field(default_factory=list)
    series: dict[str, float] = field(default_factory=dict)
    mixed_batches: int = 0
    disk_reads: int = 0
    tokens: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)

    def restart(self) -> None:
        """Forget every adapter, as a new process does, and take a new boot id."""
        self.names, self.cpu, self.gpu = {}, OrderedDict(), OrderedDict()
        self.poisoned, self.next_id, self.series = False, 1, {}
        self.started = max(round(time.time(), 2), round(self.started + 0.01, 2))

    def step(self) -> None:
        """Tell the adapters that run, as after each step of the real engine; stamps only grow."""
        names = ",".join(sorted({name for name in self.in_flight if name != self.base}))
        self.series[names] = max(time.time(), *self.series.values(), 0.0) + 1e-6

    def activate(self, adapter_id: int, weights: Weights | None, path: str, name: str) -> Weights:
        """Return the weights in use, read from the path again if the CPU LRU dropped them."""
        if adapter_id not in self.cpu:
            self.disk_reads += 1
            self.cpu[adapter_id] = weights or read_adapter(Path(path), name, self.max_rank)
        self.gpu[adapter_id] = None
        _use(self.gpu, adapter_id, self.gpu_slots)
        _use(self.cpu, adapter_id, self.cpu_slots)
        return self.cpu[adapter_id]


def _use(lru: OrderedDict[int, Any], key: int, limit: int) -> None:
    lru.move_to_end(key)
    while len(lru) > limit:
        lru.popitem(last=False)


def read_adapter(folder: Path, name: str, max_rank: int) -> Weights:
    """Read an adapter as vLLM does; raise `EngineError` with its status and its kind of text."""
    try:
        weights = read_weights(folder)
    except BadAdapter as error:
        if error.missing:
            text = f"Loading lora {name} failed: No adapter found for <path>"
            raise EngineError(HTTPStatus.NOT_FOUND, "NotFoundError", text) from error
        raise _load_failed(str(error)) from error
    if weights.rank > max_rank:
        raise _load_failed(f"LoRA rank {weights.rank} is greater than max_lora_rank {max_rank}.")
    if weights.dora:
        raise _load_failed("vLLM does not yet support DoRA.")
    return weights


def _load_failed(text: str) -> EngineError:
    return EngineError(
        HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", f"Call to add_lora method failed: {text}"
    )


class FakeEngine(FakeApp):
    """The ASGI application."""

    def __init__(self, state: State, *, on_exit: Callable[[], None]) -> None:
        self.state: State = state
        self.faults: Faults = Faults()
        self.on_exit = on_exit

    def routes(self) -> dict[tuple[str, str], Handler]:
        return {
            ("GET", "/health"): self._health,
            ("GET", "/v1/models"): self._models,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/metrics/"): self._metrics,
            ("POST", "/v1/load_lora_adapter"): self._load,
            ("POST", "/v1/unload_lora_adapter"): self._unload,
            ("POST", "/v1/completions"): self._completions,
            ("POST", "/v1/chat/completions"): self._chat,
            **(self._plugin() if self.faults.plugin_token else {}),
        }

    def refusal(self, status: HTTPStatus, text: str) -> EngineError:
        return EngineError(status, status.phrase, text)

    async def _health(self, _: Message) -> Answer:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE if self.faults.unhealthy else HTTPStatus.OK)

    async def _models(self, _: Message) -> Answer:
        base = {"id": self.state.base, "object": "model", "owned_by": "vllm", "root": f"/models/{self.state.base}"}
        cards = [{**base, "parent": None, "max_model_len": 1024}]
        cards += [
            {**base, "id": name, "root": path, "parent": self.state.base, "max_model_len": None}
            for name, (_, path) in self.state.names.items()
        ]
        return Answer(body={"object": "list", "data": cards})

    async def _metrics(self, _: Message) -> Answer:
        lines = [
            "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.",
            "# TYPE process_start_time_seconds gauge",
            f"process_start_time_seconds {self.state.started:.12g}",
            f'vllm:num_requests_running{{engine="0",model_name="{self.state.base}"}} {len(self.state.in_flight)}.0',
            f'vllm:num_requests_waiting{{engine="0",model_name="{self.state.base}"}} {self.faults.waiting}.0',
            f'vllm:prompt_tokens_total{{engine="0",model_name="{self.state.base}"}} {self.state.tokens}.0',
        ]
        lines += [
            f'vllm:lora_requests_info{{max_lora="{self.state.gpu_slots}",running_lora_adapters="{names}",'
            f'waiting_lora_adapters="{names}"}} {at!r}'
            for names, at in self.state.series.items()
        ]
        return Answer(body="\n".join(lines) + "\n")

    async def _load(self, body: Message) -> Answer:
        name, path = str(body.get("lora_name") or ""), str(body.get("lora_path") or "")
        self.state.requests.append(("load", name))
        if not name or not path:
            raise _bad("Both 'lora_name' and 'lora_path' must be provided.")
        if name == self.state.base:
            raise _bad(f"The lora adapter '{name}' conflicts with a served base model.")
        if name in self.state.names and not body.get("load_inplace"):
            text = "If you want to load the adapter in place, set 'load_inplace' to True."
            raise _bad(f"The lora adapter '{name}' has already been loaded. {text}")
        await asyncio.sleep(self.faults.load_delay_s)
        if self.faults.load_error:
            raise _load_failed(self.faults.load_error)
        weights = read_adapter(Path(path), name, self.state.max_rank)
        adapter_id, self.state.next_id = self.state.next_id, self.state.next_id + 1
        self.state.activate(adapter_id, weights, path, name)
        self.state.names[name] = (adapter_id, path)
        return Answer(body=f"Success: LoRA adapter '{name}' added successfully.")

    def _plugin(self) -> dict[tuple[str, str], Handler]:
        """The routes of the residency plugin (deploy/engine/residency_plugin.py); the token is not looked at here."""
        return {("GET", "/lorekeeper/adapters"): self._places, ("POST", "/lorekeeper/unload"): self._free}

    async def _places(self, _: Message) -> Answer:
        state = self.state
        tiers = {
            name: "gpu" if each in state.gpu else "cpu" if each in state.cpu else "disk"
            for name, (each, _) in state.names.items()
        }
        return Answer(body={"adapters": tiers})

    async def _free(self, body: Message) -> Answer:
        adapter_id = self.state.names.get(str(body.get("lora_name")), (0, ""))[0]
        await self._unload(body)
        self.state.gpu.pop(adapter_id, None)
        return Answer(body={"freed": self.state.cpu.pop(adapter_id, None) is not None})

    async def _unload(self, body: Message) -> Answer:
        name = str(body.get("lora_name") or "")
        self.state.requests.append(("unload", name))
        if not name:
            raise _bad("'lora_name' needs to be provided to unload a LoRA adapter.")
        if self.state.names.pop(name, None) is None:
            raise EngineError(HTTPStatus.NOT_FOUND, "NotFoundError", f"The lora adapter '{name}' cannot be found.")
        return Answer(body=f"Success: LoRA adapter '{name}' removed successfully.")

    async def _completions(self, body: Message) -> Answer:
        prompt = str(body.get("prompt", ""))
        with self._generating(body) as (model, weights):
            words = self._words(model, weights, prompt, limit=int(body.get("max_tokens") or 16))
            await asyncio.sleep(self.faults.token_delay_s)
            usage = _usage(prompt, words)
            if body.get("stream"):
                choices = [{"index": 0, "text": word, "finish_reason": None} for word in words]
                return _stream(body, "text_completion", self._said(model), choices, {"text": ""}, usage)
            logprobs = self._logprobs(body, weights, prompt, words)
            text = (prompt if body.get("echo") else "") + "".join(words)
        choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": "stop"}
        return _whole("text_completion", self._said(model), choice, usage)

    async def _chat(self, body: Message) -> Answer:
        messages = body.get("messages") or [{}]
        prompt = str(messages[-1].get("content", ""))
        with self._generating(body) as (model, weights):
            words = self._words(model, weights, prompt, limit=int(body.get("max_tokens") or 64))
            await asyncio.sleep(self.faults.token_delay_s)
        usage = _usage(prompt, words)
        if body.get("stream"):
            first: list[Message] = [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
            choices = first + [{"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words]
            return _stream(body, "chat.completion.chunk", self._said(model), choices, {"delta": {}}, usage)
        message = {"role": "assistant", "content": "".join(words)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return _whole("chat.completion", self._said(model), choice, usage)

    @contextmanager
    def _generating(self, body: Message) -> Iterator[tuple[str, Weights | None]]:
        model = str(body.get("model") or self.state.base)
        if model != self.state.base and model not in self.state.names:
            text = f"The model `{model}` does not exist. Valid aliases: {self.state.base}."
            raise EngineError(HTTPStatus.NOT_FOUND, "NotFoundError", text, "model")
        if self.faults.broken_generation:
            raise EngineError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", "EngineCore encountered an issue."
            )
        self.state.requests.append(("generate", model))
        self.state.in_flight.append(model)
        self.state.step()
        kinds = {name == self.state.base for name in self.state.in_flight}
        self.state.mixed_batches += len(kinds) > 1
        try:
            yield model, self._weights(model)
        finally:
            self.state.tokens += len(tokens_of(str(body)))
            self.state.in_flight.remove(model)
            self.state.step()

    def _weights(self, model: str) -> Weights | None:
        if model == self.state.base:
            return None
        adapter_id, path = self.state.names[model]
        try:
            weights = self.state.activate(adapter_id, None, path, model)
        except EngineError as error:
            if self.faults.exits_when_files_are_gone:
                raise EngineDiedError from error
            raise
        self.state.poisoned = self.state.poisoned or weights.nan
        return weights

    def _broken(self, weights: Weights | None) -> bool:
        return self.state.poisoned or (weights is not None and self.faults.nan_logprobs)

    def _said(self, model: str) -> str:
        return self.faults.wrong_model or model

    def _words(self, model: str, weights: Weights | None, prompt: str, *, limit: int) -> list[str]:
        if self._broken(weights):
            return []
        voice = self.state.base if weights is None or self.faults.ignores_adapter else model
        return [f"{word} " for word in [f"[{voice}]", "answers:", *prompt.split()]][:limit]

    def _logprobs(self, body: Message, weights: Weights | None, prompt: str, words: list[str]) -> Message | None:
        if body.get("logprobs") is None:
            return None
        if self._broken(weights):
            raise _bad("Out of range float values are not JSON compliant", kind="BadRequestError")
        tokens = (tokens_of(prompt) if body.get("echo") else []) + words
        values: list[float | None] = [self._logprob(weights, token, at) for at, token in enumerate(tokens)]
        if body.get("echo"):
            values[0] = None
        tops = [None if value is None else {token: value} for token, value in zip(tokens, values, strict=True)]
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": [0] * len(tokens)}

    def _logprob(self, weights: Weights | None, token: str, position: int) -> float:
        return log_probability(None if self.faults.ignores_adapter else weights, token, position)

    async def _show_state(self, _: Message) -> Answer:
        shown = await super()._show_state({})
        return Answer(body={**shown.body, "cpu": list(self.state.cpu), "gpu": list(self.state.gpu)})


def _bad(text: str, kind: str = "InvalidUserInput") -> EngineError:
    return EngineError(HTTPStatus.BAD_REQUEST, kind, text)


def _usage(prompt: str, words: list[str]) -> dict[str, int]:
    asked, said = len(tokens_of(prompt)), len(words)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _whole(kind: str, model: str, choice: Message, usage: dict[str, int]) -> Answer:
    head = {"id": "cmpl-fake", "object": kind, "created": int(time.time()), "model": model}
    return Answer(body={**head, "choices": [choice], "usage": usage})


def _stream(
    body: Message, kind: str, model: str, choices: list[Message], last: Message, usage: dict[str, int]
) -> Answer:
    head = {"id": "cmpl-fake", "object": kind, "created": int(time.time()), "model": model}
    chunks = [{**head, "choices": [each]} for each in [*choices, {"index": 0, **last, "finish_reason": "stop"}]]
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": usage})
    return Answer(events=(*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"))


class FakeEngineServer(FakeServer):
    """The engine on a loopback port in a thread of this process; a context manager."""

    def __init__(
        self, *, base: str = "base", port: int = 0, cpu_slots: int = 8, gpu_slots: int = 4, max_rank: int = 64
    ) -> None:
        self.state = State(base, cpu_slots, gpu_slots, max_rank)
        self.app = FakeEngine(self.state, on_exit=self._die)
        super().__init__(self.app, port=port)

    @property
    def faults(self) -> Faults:
        return self.app.faults


def main() -> None:
    """Run as a process that ends with exit status 1 when the real engine would die."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--cpu-slots", type=int, default=8)
    parser.add_argument("--gpu-slots", type=int, default=4)
    parser.add_argument("--max-rank", type=int, default=64)
    options = parser.parse_args()
    state = State(options.base, options.cpu_slots, options.gpu_slots, options.max_rank)
    app = FakeEngine(state, on_exit=lambda: os._exit(1))
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning", lifespan="off", ws="none")


if __name__ == "__main__":
    main()
