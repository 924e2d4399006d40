"""A contract server of LoRAX, after its published source and API, with switches for its faults.

In a test: ``with FakeLoraxServer(base="base") as engine``.
As a process: ``python -m tests.fakes.engine_lorax --port 8100 --base base``.

Where each behaviour comes from (predibase/lorax):

- a request names its adapter by ``adapter_id`` and ``adapter_source`` (default: hub), loads it if need be, and is
  answered when it is there; none or an empty id is the base (extract_adapter_params in router/src/adapter.rs,
  docs/models/adapters/index.md);
- a local adapter is a folder with safetensors, below HUGGINGFACE_HUB_CACHE if its id is no absolute path
  (`get_model_local_dir`); a folder without them raises "No local weights found in …"
  (server/lorax_server/utils/sources/local.py);
- a failed download or load is 424 with error_type "generation" for the requests that wait for it, is forgotten
  afterwards, and nothing else is harmed (router/src/loader.rs, `Terminate`);
- adapters beyond the places (--max-active-adapters) are offloaded, and read again when they are named again
  (`OffloadAdapter` there and in server/lorax_server/server.py);
- routes, forms of answers, error kinds and statuses: router/src/server.rs, docs/http_status_codes/http_status.md; GET
  /health generates a token, so it counts as a request;
- no route lists or unloads adapters; lorax_request_count: docs/reference/metrics.md; nothing says when it was started.
"""

import argparse
import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import uvicorn

from tests.fakes.generating import Asked, Reader, said_by, stream, whole
from tests.fakes.serving import Answer, FakeApp, FakeServer, Handler, Message, Refusal
from tests.fakes.weights import BadAdapter, Weights, log_probability, read_weights, tokens_of


@dataclass(slots=True)
class Faults:
    """Switches; all off is an engine in good health. Delays are seconds."""

    load_delay_s: float = 0.0
    token_delay_s: float = 0.0
    load_error: str | None = None
    unhealthy: bool = False
    overloaded: bool = False
    nan_logprobs: bool = False
    ignores_adapters: bool = False


@dataclass(slots=True)
class State:
    """What is on the GPU, by id; `disk_reads` counts over restarts, `requests` too. `cache`: HUGGINGFACE_HUB_CACHE."""

    base: str
    places: int = 8
    cache: Path = Path("/nonexistent")
    loaded: OrderedDict[str, Weights] = field(default_factory=OrderedDict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    request_count: int = 0
    disk_reads: int = 0

    def restart(self) -> None:
        """Forget every adapter, as a new process does."""
        self.loaded, self.request_count = OrderedDict(), 0

    def load(self, adapter: str) -> Weights:
        """The adapter's weights, read if they aren't there; the least recently used one makes room."""
        if adapter not in self.loaded:
            self.disk_reads += 1
            self.loaded[adapter] = _read(self.cache / adapter)
        self.loaded.move_to_end(adapter)
        while len(self.loaded) > self.places:
            self.loaded.popitem(last=False)
        return self.loaded[adapter]


def _read(folder: Path) -> Weights:
    try:
        return read_weights(folder)
    except BadAdapter as error:
        text = f"No local weights found in {folder} with extension .safetensors" if error.missing else str(error)
        raise _failed(f"Server error: {text}") from error


class FakeLorax(FakeApp):
    """The ASGI application."""

    def __init__(self, state: State, *, on_exit: Callable[[], None] = lambda: None) -> None:
        self.state: State = state
        self.faults: Faults = Faults()
        self.on_exit = on_exit

    def routes(self) -> dict[tuple[str, str], Handler]:
        return {
            ("GET", "/health"): self._health,
            ("GET", "/info"): self._info,
            ("GET", "/metrics"): self._metrics,
            ("POST", "/"): self._compatible,
            ("POST", "/generate"): self._generate,
            ("POST", "/generate_stream"): self._stream,
            ("POST", "/v1/chat/completions"): self._chat,
        }

    def refusal(self, status: HTTPStatus, text: str) -> Refusal:
        return _refusal(status, text, "unknown")

    async def _health(self, _: Message) -> Answer:
        self.state.request_count += 1
        if self.faults.unhealthy:
            raise _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "unhealthy", "healthcheck")
        return Answer()

    async def _info(self, _: Message) -> Answer:
        return Answer(body={"model_id": self.state.base, "version": "0.12.1", "max_total_tokens": 2048})

    async def _metrics(self, _: Message) -> Answer:
        count = self.state.request_count
        return Answer(body=f"lorax_request_count {count}\n" if count else "")

    async def _compatible(self, body: Message) -> Answer:
        if body.get("stream"):
            return await self._stream(body)
        answer = await self._generate(body)
        return Answer(body=[answer.body])

    async def _generate(self, body: Message) -> Answer:
        asked, weights = await self._asked(body)
        tokens = len(tokens_of(asked.prompt))
        return Answer(body=whole(asked, self._words(asked, weights), self._reader(weights), prompt_tokens=tokens))

    async def _stream(self, body: Message) -> Answer:
        asked, weights = await self._asked(body)
        tokens = len(tokens_of(asked.prompt))
        return Answer(events=stream(asked, self._words(asked, weights), self._reader(weights), prompt_tokens=tokens))

    async def _chat(self, body: Message) -> Answer:
        """`model` is the adapter's id; an empty one, or the base's own name, is the base."""
        messages = body.get("messages") or [{}]
        model = body.get("model")
        parameters = {
            "adapter_id": None if model == self.state.base else model,
            "adapter_source": body.get("adapter_source"),
            "max_new_tokens": body.get("max_tokens") or 100,
        }
        asked, weights = await self._asked({"inputs": messages[-1].get("content"), "parameters": parameters})
        message = {"role": "assistant", "content": "".join(self._words(asked, weights))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "null", "object": "chat.completion", "created": int(time.time()), "model": "null"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return Answer(body={**head, "choices": [choice], "usage": usage})

    async def _asked(self, body: Message) -> tuple[Asked, Weights | None]:
        self.state.request_count += 1
        asked = Asked.of(body)
        self.state.requests.append(("generate", asked.adapter or self.state.base))
        if not asked.prompt:
            raise _refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY, "Input validation error: `inputs` cannot be empty", "validation"
            )
        if self.faults.overloaded:
            raise _refusal(HTTPStatus.TOO_MANY_REQUESTS, "Model is overloaded", "overloaded")
        if asked.adapter is None:
            return asked, None
        return asked, await self._load(asked.adapter, (body.get("parameters") or {}).get("adapter_source"))

    async def _load(self, adapter: str, source: str | None) -> Weights | None:
        await asyncio.sleep(self.faults.load_delay_s)
        if self.faults.load_error:
            raise _failed(self.faults.load_error)
        if source != "local":
            raise _failed(
                f"Server error: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '{adapter}'"
            )
        weights = self.state.load(adapter)
        return None if self.faults.ignores_adapters else weights

    def _words(self, asked: Asked, weights: Weights | None) -> list[str]:
        return said_by(str(asked.adapter if weights else self.state.base), asked.prompt, limit=asked.limit)

    def _reader(self, weights: Weights | None) -> Reader:
        broken = weights is not None and (weights.nan or self.faults.nan_logprobs)
        return lambda token, at: None if broken else log_probability(weights, token, at)


def _failed(text: str) -> Refusal:
    return _refusal(HTTPStatus.FAILED_DEPENDENCY, f"Request failed during generation: {text}", "generation")


def _refusal(status: HTTPStatus, text: str, kind: str) -> Refusal:
    return Refusal(Answer(status, {"error": text, "error_type": kind}))


class FakeLoraxServer(FakeServer):
    """The engine in a thread."""

    def __init__(self, *, base: str = "base", places: int = 8, port: int = 0) -> None:
        self.state = State(base, places)
        self.app = FakeLorax(self.state)
        super().__init__(self.app, port=port)

    @property
    def faults(self) -> Faults:
        return self.app.faults


def main() -> None:
    """Run as a process."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--places", type=int, default=8)
    options = parser.parse_args()
    app = FakeLorax(State(options.base, options.places))
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning", lifespan="off", ws="none")


if __name__ == "__main__":
    main()
