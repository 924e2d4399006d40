from typing import Any

import numpy as np
import pytest

from tests.unit.workers.validation.adapters import (
    DIMENSIONS,
    HIDDEN,
    ROOT,
    VOCAB,
    Upload,
    base,
    key,
    pairs,
)
from workers.validation import Report, Verdict


def codes(report: Report, verdict: Verdict = Verdict.FAIL) -> set[str]:
    return {check.code for check in report.checks if check.name == "compatibility" and check.verdict is verdict}


def ones(*shape: int) -> Any:
    return np.full(shape, 0.01, dtype=np.float32)


def test_the_facts_are_read_from_the_tensors(upload: Upload) -> None:
    facts = upload.weights(pairs(4)).config(r=4, lora_alpha=8).check().facts
    assert (facts.rank, facts.declared_rank, facts.alpha, facts.dtype) == (4, 4, 8.0, "F32")
    assert facts.target_modules == ("k_proj", "o_proj", "q_proj", "v_proj")
    assert facts.module_count == 8
    assert facts.parameters == 2 * 4 * sum(sum(DIMENSIONS[f"self_attn.{name}"]) for name in facts.target_modules)


@pytest.mark.parametrize(
    ("old", "new", "code", "word"),
    [
        (ROOT, "base_model.model.", "prefix", "prefix 'model.'"),
        (ROOT, "model.", "prefix", "base_model.model."),
        (ROOT, "base_model.model.base_model.model.model.", "wrapper", "PEFT"),
        (ROOT, ROOT + "model.", "prefix", "once too often"),
        (ROOT, "module." + ROOT, "wrapper", "DDP"),
        (ROOT, "_fsdp_wrapped_module." + ROOT, "wrapper", "FSDP"),
        (ROOT, "_orig_mod.module." + ROOT, "wrapper", "torch.compile and DistributedDataParallel"),
        (ROOT, "pretrained_model." + ROOT, "wrapper", "value-head"),
        ("layers.1.", "layers.1._fsdp_wrapped_module._checkpoint_wrapped_module.", "wrapper", "FSDP and activation"),
        (".q_proj.lora_", ".q_proj.default.lora_", "wrapper", "adapter name"),
        (ROOT + "layers.1.self_attn.q_proj.lora_A.weight", "lora_unet_q_proj.lora_down.weight", "kohya", "kohya"),
        (ROOT + "layers.1.self_attn.q_proj.lora_A.weight", "lora_te_q_proj.alpha", "kohya", "kohya"),
        ("q_proj.lora_A.weight", "to_q_lora.down.weight", "diffusers", "diffusers"),
        ("q_proj.lora_A.weight", "_flat_param", "flat", "FSDP"),
        ("self_attn.q_proj", "self_attn.qkv_proj", "fused", "q_proj, k_proj, v_proj apart"),
        ("self_attn.q_proj", "mlp.gate_up_proj", "fused", "gate_proj, up_proj apart"),
        (ROOT, "base_model.model._orig_mod.model.", "wrapper", "torch.compile"),
        (ROOT, "base_model.model.module.model.", "wrapper", "DistributedDataParallel"),
        (ROOT, "base_model.model._fsdp_wrapped_module.model.", "wrapper", "FSDP"),
        (ROOT, ROOT + "language_model.", "wrapper", "multimodal"),
        (ROOT, "base_model.model.language_model.model.", "wrapper", "multimodal"),
        (".lora_", ".base_layer.lora_", "wrapper", "base_layer"),
        (".weight", ".default.weight", "adapter_name", "default"),
        ("layers.1.", "layers.30.", "layer", "30 layers"),
        ("self_attn", "attention", "module", "no module"),
        (".lora_A.weight", ".lora_a", "mlx", "MLX"),
        (".lora_A", ".lora_down", "kohya", "kohya"),
        ("q_proj.lora_A.weight", "q_proj.hada_w1_a", "other_type", "another adapter type"),
        ("self_attn.q_proj", "input_layernorm", "no_matrix", "linear"),
        ("self_attn.q_proj", "mlp.experts", "experts", "expert"),
    ],
)
def test_keys_that_engines_drop_in_silence_are_refused(
    upload: Upload, old: str, new: str, code: str, word: str
) -> None:
    tensors = {name.replace(old, new): array for name, array in pairs().items()}
    report = upload.weights(tensors).config().check()
    assert code in codes(report)
    assert any(word in reason and "key" in reason for reason in report.reasons)


@pytest.mark.parametrize(
    ("name", "shape", "code"),
    [
        (f"{ROOT}layers.0.self_attn.q_proj.bias", (HIDDEN,), "bias"),
        (f"{ROOT}layers.0.self_attn.q_proj.lora_B.bias", (HIDDEN,), "bias"),
        (f"{ROOT}layers.0.self_attn.q_proj.lora_magnitude_vector", (HIDDEN,), "dora"),
        (f"{ROOT}norm.modules_to_save.weight", (HIDDEN,), "modules_to_save"),
        (f"{ROOT}embed_tokens.token_adapter.trainable_tokens_delta", (3, HIDDEN), "tokens"),
        (f"{ROOT}layers.0.self_attn.q_proj.lora_diag", (8,), "variant"),
        (f"{ROOT}embed_tokens.weight", (8, HIDDEN), "embeddings"),
        (f"{ROOT}embed_tokens.base_layer.weight", (8, HIDDEN), "embeddings"),
        ("base_model.model.lm_head.weight", (8, HIDDEN), "embeddings"),
        (f"{ROOT}norm.weight", (HIDDEN,), "base_weight"),
        ("anything", (1,), "key"),
    ],
)
def test_a_tensor_that_is_no_lora_pair_is_refused_by_name(
    upload: Upload, name: str, shape: tuple[int, ...], code: str
) -> None:
    report = upload.weights({**pairs(), name: ones(*shape)}).config().check()
    assert codes(report) == {code}
    assert name in report.reasons[0]


@pytest.mark.parametrize("half", ["A", "B"])
def test_a_missing_half_is_named(upload: Upload, half: str) -> None:
    tensors = pairs()
    del tensors[key(1, "self_attn.o_proj", half)]
    report = upload.weights(tensors).config().check()
    assert codes(report) == {"pair"}
    assert f"model.layers.1.self_attn.o_proj lacks lora_{half}" in report.reasons[0]


@pytest.mark.parametrize(
    ("half", "shape", "code"),
    [
        ("A", (8, 512), "shape"),
        ("B", (192, 8), "shape"),
        ("A", (HIDDEN, 8), "transposed"),
        ("B", (8, HIDDEN), "transposed"),
        ("A", (0, HIDDEN), "empty"),
        ("A", (0,), "empty"),
        ("B", (HIDDEN, 0), "empty"),
        ("A", (8, HIDDEN, 1), "dimensions"),
        ("A", (8 * HIDDEN,), "dimensions"),
        ("A", (4, HIDDEN), "pair_rank"),
    ],
)
def test_a_wrong_shape_is_refused_with_what_the_base_needs(
    upload: Upload, half: str, shape: tuple[int, ...], code: str
) -> None:
    tensors = {**pairs(), key(0, "self_attn.q_proj", half): ones(*shape)}
    report = upload.weights(tensors).config().check()
    assert codes(report) == {code}
    assert "shape" in report.reasons[0]
    assert "model.layers.0.self_attn.q_proj" in report.reasons[0]


def test_a_scalar_in_the_place_of_a_matrix_is_refused(upload: Upload) -> None:
    report = upload.weights({**pairs(), key(0, "self_attn.q_proj", "A"): ones()}).config().check()
    assert codes(report) == {"empty"}


def test_a_true_rank_other_than_declared_is_refused(upload: Upload) -> None:
    report = upload.weights(pairs(16)).config(r=8).check()
    assert codes(report) == {"rank"}
    assert "true rank 16" in report.reasons[0]


def test_a_true_rank_above_the_limit_is_refused(upload: Upload) -> None:
    report = upload.weights(pairs(32)).config(r=8).check()
    assert "rank_limit" in codes(report)


def test_a_rank_pattern_explains_other_ranks(upload: Upload) -> None:
    tensors = pairs(4, ("self_attn.k_proj", "self_attn.v_proj")) | pairs(8, ("self_attn.q_proj",))
    upload.weights(tensors)
    assert upload.config(r=4, rank_pattern={"q_proj": 8}).check().verdict == "accept"
    assert upload.config(r=4, rank_pattern={r"^model.layers.\d+.self_attn.q_proj": 8}).check().verdict == "accept"
    assert codes(upload.config(r=4, rank_pattern={"k_proj": 8}).check()) == {"rank"}


@pytest.mark.parametrize(
    "changes",
    [
        {"target_modules": ["q_proj"]},
        {"target_modules": r".*\.q_proj"},
        {"target_modules": "q_proj"},
        {"exclude_modules": ["v_proj"]},
        {"exclude_modules": r".*v_proj"},
        {"layers_to_transform": 0},
        {"layers_to_transform": [0, 1], "layers_pattern": "blocks"},
    ],
)
def test_weights_that_peft_would_leave_alone_are_refused(upload: Upload, changes: dict[str, Any]) -> None:
    report = upload.weights(pairs()).config(**changes).check()
    assert codes(report) == {"untargeted"}
    assert "target_modules" in report.reasons[0]


def test_a_lora_on_an_untied_head_and_embedding_is_compatible(upload: Upload) -> None:
    tensors = {
        **pairs(),
        "base_model.model.lm_head.lora_A.weight": ones(8, HIDDEN),
        "base_model.model.lm_head.lora_B.weight": ones(VOCAB, 8),
        f"{ROOT}embed_tokens.lora_embedding_A": ones(8, VOCAB),
        f"{ROOT}embed_tokens.lora_embedding_B": ones(HIDDEN, 8),
    }
    upload.weights(tensors).config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "lm_head", "embed_tokens"])
    assert "tied" not in codes(upload.check(base=base(tied=False)))
    tied = upload.check()
    assert tied.verdict == "warn"
    assert "tied" in tied.reasons[0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (f"{ROOT}embed_tokens.lora_embedding_A", (8, VOCAB + 2)),
        ("base_model.model.lm_head.lora_B.weight", (VOCAB + 2, 8)),
    ],
)
def test_embeddings_of_another_vocabulary_are_refused(upload: Upload, name: str, shape: tuple[int, ...]) -> None:
    tensors = {
        **pairs(),
        "base_model.model.lm_head.lora_A.weight": ones(8, HIDDEN),
        "base_model.model.lm_head.lora_B.weight": ones(VOCAB, 8),
        f"{ROOT}embed_tokens.lora_embedding_A": ones(8, VOCAB),
        f"{ROOT}embed_tokens.lora_embedding_B": ones(HIDDEN, 8),
        name: ones(*shape),
    }
    report = upload.weights(tensors).config(target_modules="all-linear").check()
    assert "vocabulary" in codes(report)
    assert "vocabulary" in report.reasons[0]


def test_embedding_keys_on_a_linear_layer_are_refused(upload: Upload) -> None:
    name = f"{ROOT}layers.0.self_attn.q_proj"
    tensors = {f"{name}.lora_embedding_A": ones(8, HIDDEN), f"{name}.lora_embedding_B": ones(HIDDEN, 8)}
    assert codes(upload.weights(tensors).config().check()) == {"pair_kind"}


@pytest.mark.parametrize(
    ("recorded", "verdict", "code"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "accept", None),
        ("smollm2-135m-instruct", "accept", None),
        ("mirror/SmolLM2-135M-Instruct/", "accept", None),
        ("/models/SmolLM2-135M-Instruct", "accept", None),
        ("unsloth/SmolLM2-135M-Instruct-unsloth-bnb-4bit", "warn", "base_quantised"),
        ("someone/SmolLM2-135M-Instruct-GPTQ", "warn", "base_quantised"),
        ("HuggingFaceTB/SmolLM2-135M", "warn", "base_variant"),
        ("/scratch/run-12/merged", "warn", "base_local"),
        ("C:\\models\\x", "warn", "base_local"),
        (None, "warn", "base_missing"),
        ("", "warn", "base_missing"),
        (7, "warn", "base_missing"),
        ("HuggingFaceTB/SmolLM-135M-Instruct", "reject", "base_other"),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", "reject", "base_other"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "reject", "base_other"),
    ],
)
def test_the_recorded_base_must_be_this_base(upload: Upload, recorded: object, verdict: str, code: str | None) -> None:
    report = upload.weights(pairs()).config(base_model_name_or_path=recorded).check()
    assert report.verdict == verdict
    assert code is None or code in codes(report, Verdict.FAIL if verdict == "reject" else Verdict.WARN)


@pytest.mark.parametrize(
    ("recorded", "hints", "code"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", ("base",), None),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", ("Smollm2 135M 8k Lc100K Mix1 Ep2",), None),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", ("llama-run-7",), None),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", ("smollm2-135m-instruct",), None),
        ("HuggingFaceTB/SmolLM2-135M", ("smollm2-135m-instruct",), "base_variant"),
        ("gpt2", ("base", "Smollm2 135M 8k Lc100K Mix1 Ep2"), "base_variant"),
        ("/models/SmolLM2-135M-Instruct", ("SmolLM2-135M-Instruct",), None),
        ("HuggingFaceTB/SmolLM-135M-Instruct", ("smollm2",), "base_other"),
        ("HuggingFaceTB/SmolLM-135M-Instruct", ("x", "Smollm2 135M 8k Lc100K Mix1 Ep2"), "base_other"),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", ("smollm2-135m-instruct",), "base_other"),
        ("unsloth/SmolLM2-135M-Instruct-bnb-4bit", ("base",), "base_quantised"),
        ("unsloth/SmolLM2-135M-Instruct-bnb-4bit", (), "base_quantised"),
        ("x/SmolLM2-135M-Instruct-quantized.w4a16", ("base",), "base_quantised"),
        ("x/SmolLM2-135M-Instruct-NVFP4", ("base",), "base_quantised"),
        ("/scratch/run-12/merged", ("base",), "base_local"),
        ("/scratch/run-12/merged", (), "base_local"),
    ],
)
def test_hints_are_believed_only_where_they_contradict(
    upload: Upload, recorded: str, hints: tuple[str, ...], code: str | None
) -> None:
    report = upload.weights(pairs()).config(base_model_name_or_path=recorded).check(base_names=(), base_hints=hints)
    found = codes(report) | codes(report, Verdict.WARN)
    assert found == ({code} if code else set())


def test_without_a_known_name_of_the_base_names_are_not_compared(upload: Upload) -> None:
    upload.weights(pairs()).config(base_model_name_or_path="Qwen/Qwen2.5-0.5B")
    assert upload.check(base_names=()).verdict == "accept"


@pytest.mark.parametrize(
    ("revision", "hints", "code"),
    [(None, (), None), ("main", (), None), ("a1b2", ("a1b2",), None), ("a1b2", ("x",), "base_revision")],
)
def test_a_recorded_revision_of_the_base_is_shown_where_it_cannot_be_compared(
    upload: Upload, revision: str | None, hints: tuple[str, ...], code: str | None
) -> None:
    report = upload.weights(pairs()).config(revision=revision).check(base_hints=hints)
    assert codes(report, Verdict.WARN) == ({code} if code else set())
