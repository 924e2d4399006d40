"""How engines tell the log-probabilities of a prompt's tokens, in the two forms that there are.

JSON has no NaN: some engines write null in its place, others refuse to answer. The first token has no value in any.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workers.node.engines.ports import Reading
from workers.node.errors import EngineRefusedError


def echoed_request(model: str, prompt: str) -> dict[str, Any]:
    """An OpenAI completion of one token that repeats its prompt: vLLM and SGLang."""
    return {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 0}


def echoed_reading(answer: Mapping[str, Any]) -> Reading:
    """The reading in the answer to `echoed_request`; `EngineRefusedError` when there is none."""
    try:
        prompt_tokens = int(answer["usage"]["prompt_tokens"])
        values = answer["choices"][0]["logprobs"]["token_logprobs"][1:prompt_tokens]
        return Reading(model=str(answer["model"]), log_probabilities=_numbers(values))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EngineRefusedError("the engine's completion has no log-probabilities of the prompt") from error


def prefilled_request(prompt: str, **adapter: str) -> dict[str, Any]:
    """A `/generate` of one token with the details of its prompt: TGI and LoRAX. `adapter` goes to the parameters."""
    return {"inputs": prompt, "parameters": {"max_new_tokens": 1, "decoder_input_details": True, **adapter}}


def prefilled_reading(model: str, answer: Mapping[str, Any]) -> Reading:
    """The reading in the answer to `prefilled_request`, which doesn't name its model.

    Raises:
        EngineRefusedError: the engine keeps the prompt's log-probabilities to itself.

    """
    try:
        details = answer["details"]
        values = _numbers([token["logprob"] for token in details["prefill"][1:]])
        said = _numbers([token["logprob"] for token in details["tokens"]])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EngineRefusedError("the engine's answer has no details of the prompt") from error
    # Poison shows in what is generated too; an engine that only keeps silent generates as ever.
    if not any(map(math.isfinite, values)) and any(map(math.isfinite, said)):
        raise EngineRefusedError(
            "the engine gives no log-probabilities of prompts: start TGI with --enable-prefill-logprobs"
        )
    return Reading(model=model, log_probabilities=values)


def _numbers(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else float(value) for value in values)
