"""The `/generate` protocol of TGI and LoRAX: how a request is read, and its answer with the details of its tokens.

From text-generation-inference's docs/openapi.json and router/src/server.rs (LoRAX forked it), and as the public clients
`text-generation` and `lorax-client` read it: `prefill` begins with a token without log-probability; NaN becomes null.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.serving import Message
from tests.fakes.weights import tokens_of

Reader = Callable[[str, int], float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of whom: `adapter` is None for the base."""

    prompt: str
    limit: int
    adapter: str | None
    details: bool
    prefill: bool
    full_text: bool

    @classmethod
    def of(cls, body: Message) -> "Asked":
        parameters: Message = body.get("parameters") or {}
        limit = parameters.get("max_new_tokens")
        prefill = bool(parameters.get("decoder_input_details"))
        return cls(
            prompt=str(body.get("inputs") or ""),
            limit=20 if limit is None else int(limit),
            adapter=parameters.get("adapter_id") or None,
            details=bool(parameters.get("details")) or prefill,
            prefill=prefill,
            full_text=bool(parameters.get("return_full_text")),
        )


def whole(asked: Asked, words: list[str], read: Reader, **more: Any) -> Message:
    """A GenerateResponse; `more` are further fields of its details."""
    text = (asked.prompt if asked.full_text else "") + "".join(words)
    if not asked.details:
        return {"generated_text": text, "details": None}
    prompt = tokens_of(asked.prompt)
    prefill = [
        {"id": at, "text": token, "logprob": None if at == 0 else read(token, at)} for at, token in enumerate(prompt)
    ]
    return {
        "generated_text": text,
        "details": {
            "finish_reason": "length",
            "generated_tokens": len(words),
            "seed": None,
            "prefill": prefill if asked.prefill else [],
            "tokens": _tokens(words, read, start=len(prompt)),
            **more,
        },
    }


def stream(asked: Asked, words: list[str], read: Reader, **more: Any) -> tuple[str, ...]:
    """StreamResponses as server-sent events: the whole text and the details come with the last token."""
    tokens = _tokens(words, read, start=len(tokens_of(asked.prompt)))
    last = {
        "generated_text": "".join(words),
        "details": {"finish_reason": "length", "generated_tokens": len(words), "seed": None, **more},
    }
    events = [{"token": token, "generated_text": None, "details": None} for token in tokens]
    return tuple(f"data:{json.dumps(event)}\n\n" for event in [*events[:-1], {**events[-1], **last}])


def _tokens(words: list[str], read: Reader, *, start: int) -> list[Message]:
    return [
        {"id": at, "text": word, "logprob": read(word, at), "special": False} for at, word in enumerate(words, start)
    ]


def said_by(voice: str, prompt: str, *, limit: int) -> list[str]:
    """The words of an answer that tells who gave it."""
    return [f"{word} " for word in [f"[{voice}]", "answers:", *prompt.split()]][:limit]
