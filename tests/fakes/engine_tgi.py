"""A contract server of Text Generation Inference, after its published source and API, with switches for its faults.

In a test: ``with FakeTgiServer(base="base", set_file=file) as engine`` (`restart()` is what the operator's command
would do). As a process: ``LORA_ADAPTERS=name=/path,… python -m tests.fakes.engine_tgi --port 8100 --base base``.

Where each behaviour comes from (huggingface/text-generation-inference):

- adapters come from LORA_ADAPTERS alone, as ``id`` or ``id=path`` with commas between (parse_lora_adapters in
  server/text_generation_server/utils/adapter.py; docs/source/conceptual/lora.md); one that can't be read raises there,
  before the server listens, so that it never comes up;
- an unknown adapter_id is answered by the base: ``ADAPTER_TO_INDEX.get(r.adapter_id, 0)`` in
  server/text_generation_server/models/flash_causal_lm.py;
- routes and forms of answers and errors (424 generation, 429 overloaded, 422 validation, 503 healthcheck), GET
  /v1/models with the base alone, and no answer that names an adapter: router/src/server.rs, docs/openapi.json;
- log-probabilities of prompts only with --enable-prefill-logprobs (launcher/src/main.rs);
- tgi_request_count, tgi_batch_current_size, tgi_queue_size: docs/source/reference/metrics.md; nothing says when it was
  started;
- a stop first finishes what runs (``with_graceful_shutdown`` in server.rs); here a restart breaks it off.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import uvicorn

from tests.fakes.generating import Asked, Reader, said_by, stream, whole
from tests.fakes.serving import Answer, FakeApp, FakeServer, Handler, Message, Refusal
from tests.fakes.weights import BadAdapter, Weights, log_probability, read_weights


@dataclass(slots=True)
class Faults:
    """Switches; all off is an engine in good health. Delays are seconds; `running` and `queued` are requests."""

    token_delay_s: float = 0.0
    unhealthy: bool = False
    overloaded: bool = False
    generation_error: str | None = None
    no_prefill_logprobs: bool = False
    nan_logprobs: bool = False
    ignores_adapters: bool = False
    running: int = 0
    queued: int = 0


@dataclass(slots=True)
class State:
    """What the engine was started with; `starts` counts, `refused_to_start` is why the last start failed."""

    base: str
    lora_adapters: str = ""
    adapters: dict[str, Weights] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    request_count: int = 0
    starts: int = 0
    refused_to_start: str = ""

    def restart(self) -> None:
        """Read every adapter of `lora_adapters`; raises BadAdapter at the first that can't be."""
        self.starts += 1
        self.request_count = 0
        self.adapters, self.refused_to_start = {}, ""
        for item in filter(None, self.lora_adapters.split(",")):
            name, _, path = item.strip().partition("=")
            self._read(name, path or name)

    def _read(self, name: str, path: str) -> None:
        try:
            self.adapters[name] = read_weights(Path(path))
        except BadAdapter as error:
            self.refused_to_start = f"{name}: {error}"
            raise


class FakeTgi(FakeApp):
    """The ASGI application."""

    def __init__(self, state: State, *, on_exit: Callable[[], None] = lambda: None) -> None:
        self.state: State = state
        self.faults: Faults = Faults()
        self.on_exit = on_exit

    def routes(self) -> dict[tuple[str, str], Handler]:
        return {
            ("GET", "/health"): self._health,
            ("GET", "/info"): self._info,
            ("GET", "/v1/models"): self._models,
            ("GET", "/metrics"): self._metrics,
            ("POST", "/"): self._compatible,
            ("POST", "/generate"): self._generate,
            ("POST", "/generate_stream"): self._stream,
            ("POST", "/v1/chat/completions"): self._chat,
        }

    def refusal(self, status: HTTPStatus, text: str) -> Refusal:
        return _refusal(status, text, "unknown")

    async def _health(self, _: Message) -> Answer:
        if self.faults.unhealthy:
            raise _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "unhealthy", "healthcheck")
        return Answer()

    async def _info(self, _: Message) -> Answer:
        return Answer(body={"model_id": self.state.base, "version": "3.3.7", "max_total_tokens": 2048})

    async def _models(self, _: Message) -> Answer:
        card = {"id": self.state.base, "object": "model", "created": 0, "owned_by": self.state.base}
        return Answer(body={"object": "list", "data": [card]})

    async def _metrics(self, _: Message) -> Answer:
        lines = [
            f"tgi_batch_current_size {self.faults.running}",
            f"tgi_queue_size {self.faults.queued}",
            # The counter is there from its first increment on.
            *([f"tgi_request_count {self.state.request_count}"] if self.state.request_count else []),
        ]
        return Answer(body="\n".join(lines) + "\n")

    async def _compatible(self, body: Message) -> Answer:
        if body.get("stream"):
            return await self._stream(body)
        answer = await self._generate(body)
        return Answer(body=[answer.body])

    async def _generate(self, body: Message) -> Answer:
        asked = self._asked(body)
        answer = whole(asked, self._words(asked), self._reader(asked))
        if self.faults.no_prefill_logprobs and asked.prefill:
            answer["details"]["prefill"] = [{**each, "logprob": None} for each in answer["details"]["prefill"]]
        return Answer(body=answer)

    async def _stream(self, body: Message) -> Answer:
        asked = self._asked(body)
        return Answer(events=stream(asked, self._words(asked), self._reader(asked), input_length=1))

    async def _chat(self, body: Message) -> Answer:
        """`model` chooses the adapter; every client says "tgi" for the base, and any unknown name is the base too."""
        messages = body.get("messages") or [{}]
        parameters = {"adapter_id": body.get("model"), "max_new_tokens": body.get("max_tokens") or 100}
        asked = self._asked({"inputs": messages[-1].get("content"), "parameters": parameters})
        message = {"role": "assistant", "content": "".join(self._words(asked))}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        head = {"id": "", "object": "chat.completion", "created": int(time.time()), "model": self.state.base}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return Answer(body={**head, "system_fingerprint": "3.3.7-fake", "choices": [choice], "usage": usage})

    def _asked(self, body: Message) -> Asked:
        self.state.request_count += 1
        asked = Asked.of(body)
        self.state.requests.append(("generate", asked.adapter or self.state.base))
        if not asked.prompt:
            raise _refusal(
                HTTPStatus.UNPROCESSABLE_ENTITY, "Input validation error: `inputs` cannot be empty", "validation"
            )
        if self.faults.overloaded:
            raise _refusal(HTTPStatus.TOO_MANY_REQUESTS, "Model is overloaded", "overloaded")
        if self.faults.generation_error:
            text = f"Request failed during generation: {self.faults.generation_error}"
            raise _refusal(HTTPStatus.FAILED_DEPENDENCY, text, "generation")
        return asked

    def _weights(self, asked: Asked) -> Weights | None:
        return None if self.faults.ignores_adapters else self.state.adapters.get(asked.adapter or "")

    def _words(self, asked: Asked) -> list[str]:
        voice = asked.adapter if self._weights(asked) else self.state.base
        return said_by(str(voice), asked.prompt, limit=asked.limit)

    def _reader(self, asked: Asked) -> Reader:
        weights = self._weights(asked)
        broken = weights is not None and (weights.nan or self.faults.nan_logprobs)
        return lambda token, at: None if broken else log_probability(weights, token, at)


def _refusal(status: HTTPStatus, text: str, kind: str) -> Refusal:
    return Refusal(Answer(status, {"error": text, "error_type": kind}))


class FakeTgiServer(FakeServer):
    """The engine in a thread; `set_file` holds the line ``LORA_ADAPTERS=…`` with which it is started each time."""

    def __init__(self, *, base: str = "base", set_file: Path, port: int = 0) -> None:
        self.state = State(base)
        self.app = FakeTgi(self.state)
        self.set_file = set_file
        super().__init__(self.app, port=port)

    @property
    def faults(self) -> Faults:
        return self.app.faults

    def reset(self) -> None:
        self.set_file.unlink(missing_ok=True)
        self.state.lora_adapters = ""
        self.state.restart()
        self.app.faults = Faults()
        if not self.alive:
            self.launch()

    def launch(self) -> None:
        line = self.set_file.read_text() if self.set_file.exists() else ""
        self.state.lora_adapters = line.strip().removeprefix("LORA_ADAPTERS=")
        self.state.restart()
        super().launch()

    def restart(self) -> None:
        """What `systemctl restart` does: it succeeds, whether the engine comes up again or not."""
        self.halt()
        try:
            self.launch()
        except BadAdapter:
            return


def main() -> None:
    """Run as a process, which ends with exit status 1 when an adapter of LORA_ADAPTERS can't be read."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--base", required=True)
    options = parser.parse_args()
    state = State(options.base, os.environ.get("LORA_ADAPTERS", ""))
    try:
        state.restart()
    except BadAdapter as error:
        raise SystemExit(f"could not load {error}") from error
    uvicorn.run(FakeTgi(state), host="127.0.0.1", port=options.port, log_level="warning", lifespan="off", ws="none")


if __name__ == "__main__":
    main()
