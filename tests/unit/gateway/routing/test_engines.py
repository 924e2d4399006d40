import pytest

from gateway.routing.engines import adapter_form, base_form

NAME, BASE = "lk-support-tone-v1-0123", "llama-3.1-8b"


@pytest.mark.parametrize(
    ("kind", "model", "fields", "answers_as"),
    [
        ("vllm", NAME, {}, NAME),
        ("sglang", f"{BASE}:{NAME}", {}, f"{BASE}:{NAME}"),
        ("tgi", NAME, {}, None),
        ("lorax", NAME, {"adapter_source": "local"}, None),
    ],
)
def test_each_engine_is_asked_for_an_adapter_in_its_own_form(
    kind: str, model: str, fields: dict[str, object], answers_as: str | None
) -> None:
    form = adapter_form(kind, engine_name=NAME, base_model=BASE)
    assert form is not None
    assert (form.model, dict(form.fields), form.answers_as) == (model, fields, answers_as)


@pytest.mark.parametrize(("kind", "model"), [("vllm", BASE), ("sglang", BASE), ("tgi", "tgi"), ("lorax", "")])
def test_each_engine_is_asked_for_its_base_in_its_own_form(kind: str, model: str) -> None:
    form = base_form(kind, base_model=BASE)
    assert form is not None
    assert form.model == model


def test_no_kind_takes_an_adapters_name_for_its_base() -> None:
    for kind in ("vllm", "sglang", "tgi", "lorax"):
        adapter, base = adapter_form(kind, engine_name=NAME, base_model=BASE), base_form(kind, base_model=BASE)
        assert adapter is not None
        assert base is not None
        assert adapter.model != base.model


def test_an_unknown_kind_has_no_form() -> None:
    assert adapter_form("abacus", engine_name=NAME, base_model=BASE) is None
    assert base_form("abacus", base_model=BASE) is None
