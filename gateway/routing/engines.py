"""How each kind of engine is asked for a version, and what its answer says about who gave it.

Read in the engines' sources:

- vLLM: `model` is the name under which the adapter was loaded; an unknown name is a 404, and every answer names it.
- SGLang: `model` is `base:adapter` (`openai/serving_base.py`); an answer repeats what was asked for.
- TGI: `model` is the adapter's name, and `tgi` is the base (`router/src/lib.rs`). An unknown name is answered by the
  base, and every answer names the base.
- LoRAX: `model` is the adapter's id, in chats and completions alike, with `adapter_source: local`: a folder below
  HUGGINGFACE_HUB_CACHE, which is therefore the folder of the node's cache that holds the versions. The empty name is
  the base. Answers name no adapter.

Where an answer can't tell (TGI, LoRAX), nothing in it is checked: what then stands for the right version is that the
node's agent has probed the adapter in this life of the engine before it said `loaded`, and that a restart of the engine
takes that back. That is a weaker promise, and `docs/gateway.md` says so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Form:
    """What goes into a request's body in place of the client's `model`.

    `fields` go in beside it. `answers_as` is the model that an answer must name; None where no answer tells.
    """

    model: str
    fields: Mapping[str, object] = field(default_factory=dict)
    answers_as: str | None = None


def adapter_form(engine_kind: str, *, engine_name: str, base_model: str) -> Form | None:
    """How an engine of that kind is asked for an adapter; None for a kind that isn't known."""
    make = _ADAPTER.get(engine_kind)
    return None if make is None else make(engine_name, base_model)


def base_form(engine_kind: str, *, base_model: str) -> Form | None:
    """How an engine of that kind is asked for its base model; None for a kind that isn't known."""
    make = _BASE.get(engine_kind)
    return None if make is None else make(base_model)


_LOCAL: Final[Mapping[str, object]] = {"adapter_source": "local"}

_ADAPTER: Final[Mapping[str, Callable[[str, str], Form]]] = {
    "vllm": lambda name, _base: Form(name, answers_as=name),
    "sglang": lambda name, base: Form(f"{base}:{name}", answers_as=f"{base}:{name}"),
    "tgi": lambda name, _base: Form(name),
    "lorax": lambda name, _base: Form(name, _LOCAL),
}
_BASE: Final[Mapping[str, Callable[[str], Form]]] = {
    "vllm": lambda base: Form(base, answers_as=base),
    "sglang": lambda base: Form(base, answers_as=base),
    "tgi": lambda _base: Form("tgi"),
    "lorax": lambda _base: Form(""),
}
