import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from registry.base_models.description import tokenizer_digest
from tests.unit.workers.validation.adapters import BASE, VOCAB, Upload


def test_added_tokens_that_the_base_has_are_harmless(good: Upload) -> None:
    assert good.file("added_tokens.json", json.dumps({"<|im_end|>": 2})).check().verdict == "accept"


@pytest.mark.parametrize("index", [VOCAB, -1, "2", None, True])
def test_an_added_token_beyond_the_vocabulary_is_refused(good: Upload, index: object) -> None:
    report = good.file("added_tokens.json", json.dumps({"<|tool|>": index})).check()
    assert report.verdict == "reject"
    assert "added token" in report.reasons[0]
    assert "<|tool|>" in report.reasons[0]


def test_new_embeddings_are_refused(good: Upload) -> None:
    report = good.file("new_embeddings.safetensors").check()
    assert report.verdict == "reject"
    assert "embeddings" in report.reasons[0]


def test_another_tokenizer_and_template_are_warned_of(good: Upload) -> None:
    good.file("tokenizer_config.json", json.dumps({"eos_token": "</s>"})).file("chat_template.jinja", "{{ x }}")
    report = good.check()
    assert report.verdict == "warn"
    assert any("tokenizer" in reason for reason in report.reasons)
    assert any("template" in reason for reason in report.reasons)


def test_the_bases_own_tokenizer_and_template_are_accepted(good: Upload) -> None:
    good.file("tokenizer.json", "{}").file("chat_template.jinja", "{{ x }}")
    base = replace(
        BASE,
        tokenizer_digest=tokenizer_digest({"tokenizer.json": hashlib.sha256(b"{}").hexdigest()}),
        chat_template_digest=hashlib.sha256(b"{{ x }}").hexdigest(),
    )
    assert good.check(base=base).verdict == "accept"


def test_a_template_inside_the_tokenizer_config_is_seen(good: Upload) -> None:
    report = good.file("tokenizer_config.json", json.dumps({"chat_template": "{{ y }}"})).check()
    assert "companions.chat_template" in {f"{check.name}.{check.code}" for check in report.checks}


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"[]", b'{"a":1,"a":2}'])
@pytest.mark.parametrize("name", ["added_tokens.json", "tokenizer_config.json"])
def test_an_unreadable_companion_is_warned_of(good: Upload, name: str, content: bytes) -> None:
    report = good.file(name, content).check()
    assert report.verdict == "warn"
    assert any(f"{name} can't be read" in reason for reason in report.reasons)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("tokenizer.json", {"version": "1.0", "added_tokens": [{"id": VOCAB, "content": "<|tool|>"}]}),
        ("tokenizer_config.json", {"added_tokens_decoder": {str(VOCAB): {"content": "<|tool|>"}}}),
    ],
)
def test_tokens_beyond_the_vocabulary_are_found_wherever_a_tokenizer_notes_them(
    good: Upload, path: str, content: dict[str, object]
) -> None:
    report = good.file(path, json.dumps(content)).check()
    assert report.verdict == "reject"
    assert path in report.reasons[0]
    assert "<|tool|>" in report.reasons[0]


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"added_tokens": [', '{"added_tokens": 7}', '{"added_tokens": [7]}']
)
def test_a_tokenizer_of_any_content_is_only_warned_of(good: Upload, content: str) -> None:
    assert good.file("tokenizer.json", content).check().verdict == "warn"


def test_each_file_is_compared_with_the_bases_own_where_that_is_at_hand(good: Upload, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    assert good.file("tokenizer.json", "{}").check(base_folder=tmp_path).verdict == "accept"
    assert good.file("vocab.json", "{}").check(base_folder=tmp_path).verdict == "warn"
