"""A contract server of SGLang's adapter endpoints, after its published source and guide, with switches for its faults.

In a test: ``with FakeSglangServer(base="base") as engine``.
As a process: ``python -m tests.fakes.engine_sglang --port 8100 --base base``.

Where each behaviour comes from (sgl-project/sglang, python/sglang/srt):

- POST /load_lora_adapter {lora_name, lora_path, pinned} and /unload_lora_adapter {lora_name} answer {success,
  error_message, loaded_adapters}, 200 or 400 (entrypoints/http_server.py);
- loads and unloads hold one lock; an unload first unregisters the name, then waits without limit until its requests
  have ended; with --max-loaded-loras the least recently used adapter that isn't pinned is unloaded after a load
  (managers/tokenizer_communicator_mixin.py, lora/lora_registry.py);
- checks and their texts: DoRA, a name that is loaded already, a rank or modules beyond the memory pool, a pin that
  would take all slots but none (lora/lora_manager.py, validate_new_adapter);
- ``model: "base:adapter"`` is split at its first colon (entrypoints/openai/serving_base.py); a name that was ever
  loaded comes back from its path with the next request that names it (``lora_ref_cache`` in
  managers/tokenizer_manager.py, docs/advanced_features/lora), one that never was is a 400;
- GET /v1/models lists loaded adapters with `root` and `parent`, /server_info the arguments, of which `random_seed` is
  drawn anew at each start; OpenAI errors have `object`, `message`, `type`, `param`, `code` (http_server.py).
"""

import argparse
import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from pathlib import Path

import uvicorn

from tests.fakes.generating import said_by
from tests.fakes.serving import Answer, FakeApp, FakeServer, Handler, Message, Refusal
from tests.fakes.weights import BadAdapter, Weights, log_probability, read_weights, tokens_of


@dataclass(slots=True)
class Faults:
    """Switches; all off is an engine in good health. Delays are seconds; `stuck` is a name in use without end."""

    load_delay_s: float = 0.0
    token_delay_s: float = 0.0
    load_error: str | None = None
    unhealthy: bool = False
    nan_logprobs: bool = False
    ignores_adapters: bool = False
    stuck: str = ""
    old_routes: bool = False


@dataclass(frozen=True, slots=True)
class Adapter:
    path: str
    pinned: bool
    weights: Weights


@dataclass(slots=True)
class State:
    """The registry in the order of use, what was ever loaded (name to path and pin), and who is in use."""

    base: str
    slots: int = 8
    max_loaded: int | None = None
    max_rank: int = 64
    seed: int = field(default_factory=lambda: random.randrange(2**30))
    registry: OrderedDict[str, Adapter] = field(default_factory=OrderedDict)
    ever: dict[str, tuple[str, bool]] = field(default_factory=dict)
    in_use: list[str] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)

    def restart(self) -> None:
        """Forget every adapter, as a new process does, and draw a new seed."""
        self.registry, self.ever, self.in_use = OrderedDict(), {}, []
        self.seed = random.randrange(2**30)

    @property
    def loaded(self) -> dict[str, str]:
        return {name: adapter.path for name, adapter in self.registry.items()}

    def check(self, name: str, path: str, *, pinned: bool) -> Adapter:
        """What `validate_new_adapter` does; raises BadAdapter with its texts."""
        weights = read_weights(Path(path))
        if weights.dora:
            raise BadAdapter(f"Failed to load {name} because LoRA serving currently doesn't support DoRA adapters")
        if name in self.registry:
            raise BadAdapter(f"Failed to load LoRA adapter {name} because it is already loaded")
        if weights.rank > self.max_rank:
            raise BadAdapter(
                f"LoRA adapter {name} with rank {weights.rank} is incompatible with the current LoRA memory pool "
                "configuration. Please ensure that the LoRA adapter's rank is within the configured `--max-lora-rank` "
                "and that the target modules are included in `--lora-target-modules`."
            )
        if pinned and sum(adapter.pinned for adapter in self.registry.values()) >= self.slots - 1:
            raise BadAdapter(
                f"Failed to load LoRA adapter {name} as a pinned adapter. It is not allowed to pin all slots in the "
                "LoRA memory pool to avoid starvation for unpinned adapters and base models."
            )
        return Adapter(path, pinned, weights)


class FakeSglang(FakeApp):
    """The ASGI application."""

    def __init__(self, state: State, *, on_exit: Callable[[], None] = lambda: None) -> None:
        self.state: State = state
        self.faults: Faults = Faults()
        self.on_exit = on_exit
        self._updating = asyncio.Lock()

    def routes(self) -> dict[tuple[str, str], Handler]:
        return {
            ("GET", "/health"): self._health,
            ("GET", "/get_server_info" if self.faults.old_routes else "/server_info"): self._server_info,
            ("GET", "/v1/models"): self._models,
            ("POST", "/load_lora_adapter"): self._load,
            ("POST", "/unload_lora_adapter"): self._unload,
            ("POST", "/v1/completions"): self._completions,
            ("POST", "/v1/chat/completions"): self._chat,
        }

    def refusal(self, status: HTTPStatus, text: str) -> Refusal:
        kind = "".join(word.title() for word in status.phrase.split())
        body = {"object": "error", "message": text, "type": kind, "param": None, "code": int(status)}
        return Refusal(Answer(status, body))

    async def _health(self, _: Message) -> Answer:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE if self.faults.unhealthy else HTTPStatus.OK)

    async def _server_info(self, _: Message) -> Answer:
        info = {"model_path": self.state.base, "served_model_name": self.state.base, "version": "0.5.6"}
        return Answer(body={**info, "random_seed": self.state.seed, "internal_states": [{}]})

    async def _models(self, _: Message) -> Answer:
        base = {"id": self.state.base, "object": "model", "created": 0, "owned_by": "sglang"}
        cards = [{**base, "root": self.state.base, "parent": None, "max_model_len": 2048}]
        cards += [
            {**base, "id": name, "root": path, "parent": self.state.base, "max_model_len": None}
            for name, path in self.state.loaded.items()
        ]
        return Answer(body={"object": "list", "data": cards})

    async def _load(self, body: Message) -> Answer:
        name, path = str(body.get("lora_name") or ""), str(body.get("lora_path") or "")
        self.state.requests.append(("load", name))
        return await self._bring(name, path, pinned=bool(body.get("pinned")))

    async def _bring(self, name: str, path: str, *, pinned: bool) -> Answer:
        async with self._updating:
            await asyncio.sleep(self.faults.load_delay_s)
            if self.faults.load_error:
                return self._updated(self.faults.load_error)
            try:
                self.state.registry[name] = self.state.check(name, path, pinned=pinned)
                self.state.ever[name] = (path, pinned)
                await self._make_room()
            except BadAdapter as error:
                return self._updated(str(error))
            return self._updated("")

    async def _make_room(self) -> None:
        limit = self.state.max_loaded
        while limit is not None and len(self.state.registry) > limit:
            oldest = next((name for name, each in self.state.registry.items() if not each.pinned), None)
            if oldest is None:
                raise BadAdapter("Didn't find any LoRA adapters when trying to evict LRU LoRA adapter.")
            await self._drop(oldest)

    async def _drop(self, name: str) -> None:
        """Unregister, then wait without limit until nothing uses it."""
        del self.state.registry[name]
        while name in self.state.in_use or name == self.faults.stuck:  # noqa: ASYNC110  # a test unsets it from outside
            await asyncio.sleep(0.01)

    async def _unload(self, body: Message) -> Answer:
        name = str(body.get("lora_name") or "")
        self.state.requests.append(("unload", name))
        async with self._updating:
            if name not in self.state.registry:
                return self._updated(f"LoRA with name {name} does not exist. Loaded LoRAs: {list(self.state.loaded)}")
            await self._drop(name)
            return self._updated("")

    def _updated(self, error: str) -> Answer:
        body = {"success": not error, "error_message": error, "loaded_adapters": self.state.loaded}
        return Answer(HTTPStatus.BAD_REQUEST if error else HTTPStatus.OK, body)

    async def _completions(self, body: Message) -> Answer:
        prompt = str(body.get("prompt", ""))
        async with self._generating(body) as (voice, weights):
            words = said_by(voice, prompt, limit=int(body.get("max_tokens") or 16))
            logprobs = self._logprobs(body, weights, prompt, words)
            text = (prompt if body.get("echo") else "") + "".join(words)
        choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": "length", "matched_stop": None}
        return self._whole(body, "text_completion", choice, prompt, words)

    async def _chat(self, body: Message) -> Answer:
        messages = body.get("messages") or [{}]
        prompt = str(messages[-1].get("content", ""))
        async with self._generating(body) as (voice, _):
            words = said_by(voice, prompt, limit=int(body.get("max_tokens") or 64))
        choice = {"index": 0, "message": {"role": "assistant", "content": "".join(words)}, "finish_reason": "stop"}
        return self._whole(body, "chat.completion", choice, prompt, words)

    def _whole(self, body: Message, kind: str, choice: Message, prompt: str, words: list[str]) -> Answer:
        asked, said = len(tokens_of(prompt)), len(words)
        usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
        head = {"id": "fake", "object": kind, "created": int(time.time()), "model": body.get("model")}
        return Answer(body={**head, "choices": [choice], "usage": usage})

    @asynccontextmanager
    async def _generating(self, body: Message) -> AsyncIterator[tuple[str, Weights | None]]:
        name = str(body.get("model") or "").partition(":")[2].strip()
        self.state.requests.append(("generate", name or self.state.base))
        if name and name not in self.state.registry:
            await self._bring_back(name)
        self.state.in_use.append(name)
        try:
            await asyncio.sleep(self.faults.token_delay_s)
            use = name and not self.faults.ignores_adapters
            yield name or self.state.base, self.state.registry[name].weights if use else None
        finally:
            self.state.in_use.remove(name)

    async def _bring_back(self, name: str) -> None:
        if name not in self.state.ever:
            text = f"Got LoRA adapter that has never been loaded: {name}\nAll loaded adapters: {list(self.state.ever)}."
            raise self.refusal(HTTPStatus.BAD_REQUEST, text)
        path, pinned = self.state.ever[name]
        answer = await self._bring(name, path, pinned=pinned)
        if answer.status != HTTPStatus.OK:
            raise self.refusal(HTTPStatus.BAD_REQUEST, f"Failed to implicitly load LoRA adapter {name}")

    def _logprobs(self, body: Message, weights: Weights | None, prompt: str, words: list[str]) -> Message | None:
        if body.get("logprobs") is None:
            return None
        broken = weights is not None and (weights.nan or self.faults.nan_logprobs)
        tokens = (tokens_of(prompt) if body.get("echo") else []) + words
        values: list[float | None] = [
            None if broken else log_probability(weights, token, at) for at, token in enumerate(tokens)
        ]
        if body.get("echo"):
            values[0] = None
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": [], "text_offset": [-1] * len(tokens)}

    async def _show_state(self, _: Message) -> Answer:
        return Answer(body={**asdict(self.state), "faults": asdict(self.faults)})


class FakeSglangServer(FakeServer):
    """The engine in a thread."""

    def __init__(
        self,
        *,
        base: str = "base",
        slots: int = 8,
        max_loaded: int | None = None,
        max_rank: int = 64,
        port: int = 0,
    ) -> None:
        self.state = State(base, slots, max_loaded, max_rank)
        self.app = FakeSglang(self.state)
        super().__init__(self.app, port=port)

    @property
    def faults(self) -> Faults:
        return self.app.faults


def main() -> None:
    """Run as a process."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--max-rank", type=int, default=64)
    options = parser.parse_args()
    app = FakeSglang(State(options.base, options.slots, max_rank=options.max_rank))
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning", lifespan="off", ws="none")


if __name__ == "__main__":
    main()
