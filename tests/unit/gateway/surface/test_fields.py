import pytest

from gateway.errors import FieldNotAllowed
from gateway.surface.endpoints import CHAT, RESPONSES
from gateway.surface.fields import check_fields


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"lora_request": {"lora_name": "x"}}, "lora_request"),
        ({"lora_path": "other"}, "lora_path"),
        ({"adapter_id": None}, "adapter_id"),
        ({"adapter_source": "hub"}, "adapter_source"),
        ({"merged_adapters": {}}, "merged_adapters"),
        ({"parameters": {"adapter_id": "x"}}, "parameters.adapter_id"),
        ({"extra_body": {"model": "x"}}, "extra_body.model"),
        ({"vllm_xargs": {"kv_transfer_params": {}}}, "vllm_xargs.kv_transfer_params"),
        ({"kv_transfer_params": {"remote_host": "10.0.0.1"}}, "kv_transfer_params"),
        ({"bootstrap_host": "10.0.0.1"}, "bootstrap_host"),
        ({"request_id": "another's"}, "request_id"),
        ({"priority": -1}, "priority"),
        ({"custom_logit_processor": "80049..."}, "custom_logit_processor"),
    ],
)
def test_a_field_that_names_an_adapter_or_reaches_into_an_engine_is_refused_by_name(
    body: dict[str, object], param: str
) -> None:
    with pytest.raises(FieldNotAllowed, match=param) as caught:
        check_fields({"model": "support", **body}, CHAT)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"adapter_id": "an argument"}}}]},
        {"response_format": {"type": "json_object"}, "logprobs": True, "top_logprobs": 5},
        {"parameters": "no object", "extra_body": ["model"], "vllm_xargs": None},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
        {"guided_json": {}, "structured_outputs": {}, "cache_salt": "x", "future_field": {"lora_path": "deep inside"}},
        {"previous_response_id": "resp_1", "background": True},
    ],
)
def test_every_other_field_may_pass(body: dict[str, object]) -> None:
    check_fields({"model": "support", **body}, CHAT)


@pytest.mark.parametrize("field", ["previous_response_id", "conversation", "background"])
def test_what_would_be_kept_by_an_engine_cannot_be_asked_for(field: str) -> None:
    with pytest.raises(FieldNotAllowed, match="whole conversation") as caught:
        check_fields({"model": "support", "input": "hi", field: "resp_1"}, RESPONSES)
    assert caught.value.param == field


def test_a_client_that_says_it_refers_to_nothing_is_answered() -> None:
    check_fields(
        {"model": "x", "previous_response_id": None, "conversation": None, "background": False, "store": True},
        RESPONSES,
    )
