"""Which fields of a body may pass to an engine: all but those that would choose an adapter, or reach into an engine.

One rule for every kind of engine: what a client may send must not depend on the node that happens to answer. A field
is refused, not dropped: who sends one expects it to do something.
"""

from collections.abc import Mapping

from gateway.errors import FieldNotAllowed
from gateway.surface.endpoints import Endpoint

# They name an adapter or where its weights lie: vLLM, SGLang (lora_path), LoRAX and TGI (adapter_id and the others).
_ADAPTERS = frozenset(
    {
        "adapter",
        "adapter_id",
        "adapter_ids",
        "adapter_parameters",
        "adapter_source",
        "adapters",
        "api_token",
        "lora",
        "lora_id",
        "lora_name",
        "lora_path",
        "lora_request",
        "merged_adapters",
    }
)
# They steer the engine itself: whose cache it reads, whose turn it is, under which id it works, which code it runs.
_ENGINE = frozenset(
    {
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "custom_logit_processor",
        "data_parallel_rank",
        "ec_transfer_params",
        "kv_transfer_params",
        "logits_processors",
        "priority",
        "request_id",
        "rid",
        "routed_dp_rank",
        "session_params",
    }
)
# An engine keeps what these refer to in its memory, for whoever names it, on one node.
_KEPT = frozenset({"conversation", "previous_response_id"})
# Engines look for the same fields in these.
_NESTED = frozenset({"parameters", "sampling_params", "vllm_xargs", "extra_args", "extra_body"})

_REFUSED = _ADAPTERS | _ENGINE
_REFUSED_NESTED = _REFUSED | {"model"}


def check_fields(body: Mapping[str, object], endpoint: Endpoint) -> None:
    """Raise FieldNotAllowed, which names the field, for what no client may send to an engine."""
    if not _REFUSED.isdisjoint(body):
        name = min(_REFUSED.intersection(body))
        message = f"The field '{name}' isn't accepted: the field 'model' alone says what answers, and the gateway how."
        raise FieldNotAllowed(message, param=name)
    if not _NESTED.isdisjoint(body):
        for outer in sorted(_NESTED.intersection(body)):
            _check_nested(outer, body[outer])
    if endpoint.keeps_answers:
        _check_kept(body)


def _check_nested(outer: str, inner: object) -> None:
    if isinstance(inner, dict) and not _REFUSED_NESTED.isdisjoint(inner):
        name = min(_REFUSED_NESTED.intersection(inner))
        message = f"The field '{outer}.{name}' isn't accepted: the field 'model' alone says what answers."
        raise FieldNotAllowed(message, param=f"{outer}.{name}")


def _check_kept(body: Mapping[str, object]) -> None:
    name = next((name for name in sorted(_KEPT) if body.get(name) is not None), None)
    if name is None and body.get("background"):
        name = "background"
    if name is not None:
        message = f"The field '{name}' isn't accepted: no answer is kept. Send the whole conversation in 'input'."
        raise FieldNotAllowed(message, param=name)
