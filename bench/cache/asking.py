"""An application that streams completions and doesn't wait for one before it sends the next."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from bench.cache.identity import Voice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from bench.cache.load import Arrival

PROMPT = "Once upon a time there was"
PATIENCE_S = 60.0
_DATA, _DONE = "data: ", "[DONE]"


@dataclass(slots=True)
class Answer:
    """What became of one request; times in seconds from the moment at which it was due.

    `found` is whether its version was in the engine when it came; `said` which version the server says has answered.
    """

    version: int
    due: float
    status: int = 0
    first_token_s: float = PATIENCE_S
    total_s: float = PATIENCE_S
    voice: Voice = field(default_factory=lambda: Voice((), ()))
    found: bool = False
    tier: str = ""
    said: str = ""
    reason: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether it was answered to its end."""
        return self.status == httpx.codes.OK and not self.reason


def completion(model: str, tokens: int) -> dict[str, object]:
    """The body of every request."""
    return {
        "model": model,
        "prompt": PROMPT,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "logprobs": 1,
        "stream": True,
    }


async def stream(
    http: httpx.AsyncClient,
    url: str,
    body: Mapping[str, object],
    answer: Answer,
    *,
    began: float,
    headers: Mapping[str, str] | None = None,
) -> httpx.Headers:
    """Ask and fill in `answer`; `began` is the monotonic time at which the request was due."""
    tokens: list[str] = []
    logs: list[float] = []
    async with http.stream("POST", f"{url}/v1/completions", json=dict(body), headers=dict(headers or {})) as response:
        answer.status, answer.reason = response.status_code, ""
        if response.status_code != httpx.codes.OK:
            answer.reason = (await response.aread()).decode(errors="replace")[:300]
            return response.headers
        async for line in response.aiter_lines():
            _take(line, tokens, logs)
            if tokens and answer.first_token_s == PATIENCE_S:
                answer.first_token_s = time.monotonic() - began
    answer.total_s = time.monotonic() - began
    answer.voice = Voice(tuple(tokens), tuple(logs))
    return response.headers


def _take(line: str, tokens: list[str], logs: list[float]) -> None:
    if not line.startswith(_DATA) or line == _DATA + _DONE:
        return
    chunk = json.loads(line.removeprefix(_DATA))
    if "error" in chunk:
        raise httpx.RemoteProtocolError(str(chunk["error"]))
    for choice in chunk["choices"]:
        said = choice.get("logprobs") or {}
        tokens += said.get("tokens", ())
        logs += said.get("token_logprobs", ())


async def send_all(load: Sequence[Arrival], send: Callable[[Answer, float], Awaitable[None]]) -> list[Answer]:
    """Send every request at its time; `send` gets the answer to fill in and the monotonic time at which it is due."""
    start = time.monotonic() + 0.5
    answers = [Answer(arrival.version, arrival.at) for arrival in load]
    async with asyncio.TaskGroup() as group:
        for answer in answers:
            due = start + answer.due
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            group.create_task(_guarded(send, answer, due))
    return answers


async def _guarded(send: Callable[[Answer, float], Awaitable[None]], answer: Answer, due: float) -> None:
    try:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + PATIENCE_S):
            await send(answer, due)
    except (httpx.HTTPError, TimeoutError, ValueError) as error:
        answer.reason = answer.reason or f"{type(error).__name__}: {error}"
