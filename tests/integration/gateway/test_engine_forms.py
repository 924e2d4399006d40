"""The form in which each kind of engine is asked, tried on the contract servers of the node's drivers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.routing.engines import adapter_form, base_form
from tests.integration.workers.node.engines.contenders import BASE, Contender, Stand

NAME = "lk-support-tone-v1-0123456789"
KINDS = ("vllm", "sglang", "tgi", "lorax")


@pytest.fixture(params=KINDS)
def contender(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Contender]:
    stand = Stand(request.param, tmp_path)
    with stand.contender(tmp_path) as made:
        folder = tmp_path / NAME
        made.adapter.rename(folder)
        made.engine.load(name=NAME, path=folder)
        yield made
    stand.close()


def chat(contender: Contender, model: str, **fields: object) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": "one two"}], "max_tokens": 2, **fields}
    response = httpx.post(f"{contender.url}/v1/chat/completions", json=body, trust_env=False)
    response.raise_for_status()
    document: dict[str, Any] = response.json()
    return document


def said(document: dict[str, Any]) -> str:
    return str(document["choices"][0]["message"]["content"])


def test_the_adapter_answers_when_it_is_asked_in_the_engines_form(contender: Contender) -> None:
    form = adapter_form(contender.kind, engine_name=NAME, base_model=BASE)
    assert form is not None
    document = chat(contender, form.model, **form.fields)
    assert said(document).startswith(f"[{NAME}]")
    if form.answers_as is not None:
        assert document["model"] == form.answers_as


def test_the_base_answers_when_it_is_asked_in_the_engines_form(contender: Contender) -> None:
    form = base_form(contender.kind, base_model=BASE)
    assert form is not None
    assert said(chat(contender, form.model, **form.fields)).startswith(f"[{BASE}]")


def test_where_an_answer_proves_nothing_no_answer_is_checked(contender: Contender) -> None:
    form = adapter_form(contender.kind, engine_name=NAME, base_model=BASE)
    assert form is not None
    document = chat(contender, form.model, **form.fields)
    assert (form.answers_as is None) == (document["model"] != form.model)
