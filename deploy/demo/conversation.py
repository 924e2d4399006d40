"""Asking the gateway as an application does: the `openai` package, streaming, one question at a time.

One at a time also because the CPU build of vLLM mixes up answers of base and adapter that share a batch.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import openai

from deploy.demo.voices import voice_of

VERSION_HEADER = "x-lorekeeper-version"
TIER_HEADER = "x-lorekeeper-tier"
_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A streamed answer: which version the gateway says gave it, and how long its first token took (ms)."""

    text: str
    version: str
    tier: str
    ttft_ms: float
    began_at: float
    first_token_at: float

    @property
    def voice(self) -> str:
        """The name of the voice the answer is in, by its first words."""
        return voice_of(self.text)


class NoTokensError(Exception):
    """The stream ended without any text."""


@dataclass(slots=True)
class Application:
    """An application of the tenant with its own key. Use as a context manager, or call `close`.

    It never tries again by itself: each measured time is that of one request.
    """

    gateway_url: str
    key: str = field(repr=False)
    _client: openai.OpenAI | None = field(default=None, init=False)

    def ask(self, alias: str, question: str, *, max_tokens: int = 32) -> Reply:
        """Stream one answer to its end. Raises openai.APIError as the package does, and NoTokensError."""
        began = time.monotonic()
        answer = self._connected().chat.completions.with_raw_response.create(
            model=alias,
            messages=[{"role": "user", "content": question}],
            temperature=0.0,
            max_tokens=max_tokens,
            stream=True,
        )
        first_at: float | None = None
        pieces: list[str] = []
        for piece in _texts(answer.parse()):
            first_at = time.monotonic() if first_at is None else first_at
            pieces.append(piece)
        if first_at is None:
            raise NoTokensError(f"{alias} answered without a token")
        return Reply(
            text="".join(pieces).strip(),
            version=answer.headers.get(VERSION_HEADER, ""),
            tier=answer.headers.get(TIER_HEADER, ""),
            ttft_ms=(first_at - began) * 1000,
            began_at=began,
            first_token_at=first_at,
        )

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Self:
        """Return itself; the connection is opened by the first question."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _connected(self) -> openai.OpenAI:
        if self._client is None:
            self._client = openai.OpenAI(
                base_url=f"{self.gateway_url}/v1",
                api_key=self.key,
                max_retries=0,
                timeout=_TIMEOUT_S,
                # The gateway runs on this machine: a proxy of the environment can't reach it.
                http_client=openai.DefaultHttpxClient(trust_env=False),
            )
        return self._client


def _texts(stream: openai.Stream[openai.types.chat.ChatCompletionChunk]) -> Iterator[str]:
    """Yield the pieces of text that are not empty: the first chunk carries only a role."""
    for chunk in stream:
        content = chunk.choices[0].delta.content if chunk.choices else None
        if content:
            yield content
