import time
from typing import Any

import pytest

from tests.unit.workers.validation.adapters import MISSING, Upload, pairs
from workers.validation import Report, Verdict


def codes(report: Report, verdict: Verdict) -> set[str]:
    return {check.code for check in report.checks if check.name == "config" and check.verdict is verdict}


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"peft_type": MISSING}, "type", "peft_type"),
        ({"peft_type": "LOHA"}, "type", "LOHA"),
        ({"peft_type": 1}, "type", "type"),
        ({"r": 0}, "r", "rank r "),
        ({"r": -8}, "r", "rank r "),
        ({"r": 8.0}, "r", "8.0"),
        ({"r": True}, "r", "True"),
        ({"r": "8"}, "r", "'8'"),
        ({"r": MISSING}, "r", "None"),
        ({"r": 10**30}, "r", "rank"),
        ({"r": 32}, "rank_limit", "limit for this base is 16"),
        ({"rank_pattern": {"q_proj": 32}}, "rank_limit", "q_proj"),
        ({"rank_pattern": {"q_proj": 0}}, "rank_pattern", "rank_pattern"),
        ({"rank_pattern": []}, "rank_pattern", "rank_pattern"),
        ({"alpha_pattern": {"q_proj": "16"}}, "alpha_pattern", "alpha_pattern"),
        ({"lora_alpha": MISSING}, "alpha", "lora_alpha"),
        ({"lora_alpha": "16"}, "alpha", "'16'"),
        ({"lora_alpha": 10**400}, "alpha", "lora_alpha"),
        ({"lora_alpha": False}, "alpha", "False"),
        ({"target_modules": None}, "target_modules", "target_modules"),
        ({"target_modules": []}, "target_modules", "target_modules"),
        ({"target_modules": [1]}, "target_modules", "target_modules"),
        ({"use_dora": True}, "use_dora", "DoRA"),
        ({"use_dora": "false"}, "boolean", "use_dora"),
        ({"bias": "lora_only"}, "bias", "bias"),
        ({"bias": None}, "bias", "bias"),
        ({"lora_bias": True}, "lora_bias", "bias"),
        ({"modules_to_save": ["norm"]}, "modules_to_save", "modules_to_save"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices", "token"),
        ({"alora_invocation_tokens": [1, 520]}, "alora_invocation_tokens", "aLoRA"),
        ({"layer_replication": [[0, 4], [2, 5]]}, "layer_replication", "layer_replication"),
        ({"target_parameters": ["mlp.experts.down_proj"]}, "target_parameters", "expert"),
        ({"kasa_config": {"beta": 1}}, "kasa_config", "KaSA"),
        ({"arrow_config": {"top_k": 2}}, "arrow_config", "Arrow"),
        ({"use_bdlora": {"nblocks": 2}}, "use_bdlora", "BD-LoRA"),
        ({"use_qalora": True}, "use_qalora", "QALoRA"),
        ({"megatron_config": {"x": 1}}, "megatron_config", "Megatron"),
        ({"init_lora_weights": "pissa"}, "init", "pissa"),
        ({"init_lora_weights": "pissa_niter_16"}, "init", "pissa_niter_16"),
        ({"init_lora_weights": "OLoRA"}, "init", "OLoRA"),
        ({"init_lora_weights": "corda"}, "init", "corda"),
        ({"init_lora_weights": "loftq"}, "init", "loftq"),
        ({"init_lora_weights": "invented"}, "init", "unknown"),
        ({"init_lora_weights": 3}, "init", "3"),
        ({"future_variant": True}, "unknown_setting", "future_variant"),
        ({"future_config": {"on": 1}}, "unknown_setting", "future_config"),
        ({"layers_to_transform": "all"}, "layers", "layers_to_transform"),
        ({"target_modules": "all-linear", "layers_to_transform": [0]}, "layers", "PEFT refuses"),
        ({"exclude_modules": 3}, "exclude_modules", "exclude_modules"),
        ({"auto_mapping": {"parent_library": "os"}}, "auto_mapping", "import"),
        ({"auto_mapping": {"parent_library": "transformers_evil.x"}}, "auto_mapping", "import"),
        ({"auto_mapping": "os"}, "auto_mapping", "import"),
    ],
)
def test_a_setting_that_engines_cannot_serve_is_refused(
    upload: Upload, changes: dict[str, Any], code: str, word: str
) -> None:
    report = upload.weights(pairs()).config(**changes).check()
    assert code in codes(report, Verdict.FAIL)
    reasons = [check.message for check in report.checks if check.name == "config" and check.code == code]
    assert word in reasons[0]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lora_alpha": 100_000}, "scale"),
        ({"lora_alpha": 0}, "alpha_zero"),
        ({"lora_alpha": -16}, "alpha_negative"),
        ({"alpha_pattern": {"q_proj": 1e9}}, "scale"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out"),
        ({"init_lora_weights": "lora_ga"}, "init_lora_ga"),
        ({"task_type": "SEQ_CLS"}, "task"),
        ({"lora_dropout": 7}, "dropout"),
        ({"note": "made on a Monday"}, "unknown_value"),
    ],
)
def test_a_suspicious_setting_is_warned_of(upload: Upload, changes: dict[str, Any], code: str) -> None:
    report = upload.weights(pairs()).config(**changes).check()
    assert report.verdict == "warn"
    assert code in codes(report, Verdict.WARN)


@pytest.mark.parametrize(
    "changes",
    [
        {"future": None, "another": False, "dict": {}, "list": [], "text": "", "number": 0},
        {"use_rslora": True},
        {"lora_alpha": 12.5},
        {"init_lora_weights": "gaussian"},
        {"init_lora_weights": "eva", "eva_config": {"rho": 2.0}},
        {"init_lora_weights": False},
        {"peft_version": "0.99.0", "megatron_core": "megatron.core", "qalora_group_size": 16},
        {"task_type": None, "auto_mapping": {"parent_library": "transformers.models.llama"}},
        {"auto_mapping": {"base_model_class": "LlamaForCausalLM", "parent_library": None}},
        {"target_modules": "all-linear"},
        {"target_modules": r".*\.self_attn\.(q|k|v|o)_proj$"},
        {"target_modules": r"^(model)(?!.*(lm_head|output|emb)).*"},
        {"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "not_in_model"]},
        {"target_modules": ["self_attn.q_proj", "k_proj", "v_proj", "o_proj"]},
        {"layers_to_transform": [0, 1, 2], "layers_pattern": "layers"},
        {"layers_to_transform": [0, 1]},
        {"exclude_modules": ["lm_head"]},
    ],
)
def test_harmless_settings_are_accepted(upload: Upload, changes: dict[str, Any]) -> None:
    report = upload.weights(pairs()).config(**changes).check()
    assert report.reasons == ()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"[]", "object"),
        (b"null", "object"),
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"r": 64, "r": 8}', "duplicate"),
        (b'{"lora_alpha": NaN}', "lora_alpha"),
        (b'{"lora_alpha": 1e999}', "lora_alpha"),
        (b'{"x": [Infinity]}', "finite"),
        (b'{"a":' * 100_000, "nested"),
        (b'{"r": ' + b"1" * 5000 + b"}", "digits"),
        (b"[" * 1_100_000, "limit"),
    ],
)
def test_a_config_that_is_no_plain_object_is_refused(upload: Upload, content: bytes, word: str) -> None:
    report = upload.weights(pairs()).file("adapter_config.json", content).check()
    assert codes(report, Verdict.FAIL) == {"unreadable"}
    assert word in report.reasons[0]


@pytest.mark.parametrize("setting", ["target_modules", "exclude_modules"])
@pytest.mark.parametrize("pattern", ["([a-z0-9._]+)+!", "(unclosed", "(?:[a-z0-9._]{0,65000}){0,65000}!", "a" * 5000])
def test_a_pattern_that_is_broken_or_never_ends_is_refused_in_time(upload: Upload, setting: str, pattern: str) -> None:
    started = time.monotonic()
    upload.weights(pairs()).config(**{setting: pattern})
    report = upload.check()
    assert report.verdict == "reject"
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("setting", ["rank_pattern", "alpha_pattern"])
@pytest.mark.parametrize("pattern", ["(a+)+b", "((a{1000}){1000}){1000}", ".*.*.*.*.*x", "(unclosed", r"(a)\1"])
def test_a_costly_pattern_key_is_refused_as_engines_would_match_it(upload: Upload, setting: str, pattern: str) -> None:
    report = upload.weights(pairs()).config(**{setting: {pattern: 8}}).check()
    assert any(check.code == "pattern" for check in report.checks)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"alpha_pattern": {"q_proj": 0}}, "alpha_zero"), ({"lora_alpha": 1e-7}, "scale_faint")],
)
def test_scales_without_effect_are_warned_of(upload: Upload, changes: dict[str, Any], code: str) -> None:
    report = upload.weights(pairs()).config(**changes).check()
    assert report.verdict == "warn"
    assert code in {check.code for check in report.checks}


@pytest.mark.parametrize("key", ["alora_invocation_string", "invocation_string"])
def test_the_settings_of_older_alora_trainers_are_known(upload: Upload, key: str) -> None:
    report = upload.weights(pairs()).config(**{key: "<|start|>"}).check()
    assert report.verdict == "reject"
    assert "invocation" in report.reasons[0]
