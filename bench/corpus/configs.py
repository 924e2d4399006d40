"""Configs that no parser agrees on, that ask for what engines don't do, or that belong to something else than LoRA."""

import json

import numpy as np

from bench.corpus.case import Kind
from bench.corpus.workshop import DROPPED, ROOT, Tensors, Workshop
from workers.validation.kinds import CONFIG_FILE

CONFIGS = Kind("config")
BASES = Kind("base")


def _text(work: Workshop, text: str | bytes) -> None:
    work.weights(work.lora())
    work.file(CONFIG_FILE, text)


def _edited(work: Workshop, old: str, new: str) -> None:
    work.sound()
    path = work.folder / CONFIG_FILE
    path.write_text(path.read_text().replace(old, new))


@CONFIGS.reject("duplicate")
def a_setting_twice(work: Workshop) -> None:
    _edited(work, '"r": 8', '"r": 64,\n  "r": 8')


@CONFIGS.reject("object")
def a_list(work: Workshop) -> None:
    _text(work, "[]")


@CONFIGS.reject("JSON")
def no_json(work: Workshop) -> None:
    _text(work, "peft_type: LORA\nr: 8\n")


@CONFIGS.reject("UTF-8")
def in_utf_16(work: Workshop) -> None:
    _text(work, json.dumps({"r": 8}).encode("utf-16"))


@CONFIGS.reject("nested")
def brackets_without_end(work: Workshop) -> None:
    _text(work, '{"r": ' + "[" * 200_000)


@CONFIGS.reject("finite|NaN")
def an_alpha_that_is_no_number(work: Workshop) -> None:
    _edited(work, '"lora_alpha": 16', '"lora_alpha": NaN')


@CONFIGS.reject("finite|Infinity")
def an_infinite_alpha(work: Workshop) -> None:
    _edited(work, '"lora_alpha": 16', '"lora_alpha": 1e999')


@CONFIGS.reject("target_modules")
def no_targets(work: Workshop) -> None:
    work.sound(target_modules=[])


@CONFIGS.reject("target_modules")
def weights_outside_the_targets(work: Workshop) -> None:
    work.sound(target_modules=["q_proj"])


@CONFIGS.reject("pattern|costly|time")
def targets_that_take_forever_to_match(work: Workshop) -> None:
    work.sound(target_modules=r"(([a-z0-9_]+\.?)+)+!")


@CONFIGS.reject("pattern|costly")
def a_rank_pattern_that_takes_forever_to_match(work: Workshop) -> None:
    work.sound(rank_pattern={r"(([a-z0-9_]+\.?)+)+!": 8})


@CONFIGS.reject("DoRA")
def dora(work: Workshop) -> None:
    tensors = work.lora()
    for name in [name for name in tensors if "lora_B" in name]:
        tensors[name.replace("lora_B.weight", "lora_magnitude_vector")] = np.ones(tensors[name].shape[0], np.float32)
    work.weights(tensors)
    work.config(use_dora=True)


@CONFIGS.reject("bias")
def a_trained_bias(work: Workshop) -> None:
    tensors = work.lora()
    tensors[f"{ROOT}layers.0.self_attn.q_proj.bias"] = np.full(work.hidden, 0.01, np.float32)
    work.weights(tensors)
    work.config(bias="lora_only")


@CONFIGS.reject("bias")
def a_bias_in_lora(work: Workshop) -> None:
    work.sound(lora_bias=True)


@CONFIGS.reject("modules_to_save")
def whole_layers_saved(work: Workshop) -> None:
    tensors = work.lora()
    tensors[f"{ROOT}norm.modules_to_save.weight"] = np.ones(work.hidden, np.float32)
    work.weights(tensors)
    work.config(modules_to_save=["norm"])


@CONFIGS.reject("token")
def single_tokens_trained(work: Workshop) -> None:
    tensors = work.lora()
    tensors[f"{ROOT}embed_tokens.token_adapter.trainable_tokens_delta"] = np.ones((3, work.hidden), np.float32)
    work.weights(tensors)
    work.config(trainable_token_indices=[1, 2, 300])


@CONFIGS.reject("kasa|KaSA")
def kasa(work: Workshop) -> None:
    tensors = work.lora()
    for name in [name for name in tensors if "lora_A" in name]:
        tensors[name.replace("lora_A.weight", "lora_diag")] = np.ones(8, np.float32)
    work.weights(tensors)
    work.config(kasa_config={"beta": 0.0001})


# Settings that engines don't serve: (case, what a reason must say, the setting).
_UNSERVABLE: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("pissa", "pissa|init", {"init_lora_weights": "pissa_niter_16"}),
    ("olora", "olora|init", {"init_lora_weights": "olora"}),
    ("corda", "corda|init", {"init_lora_weights": "corda"}),
    ("loftq", "loftq|init", {"init_lora_weights": "loftq", "loftq_config": {"loftq_bits": 4}}),
    ("alora", "alora|invocation", {"alora_invocation_tokens": [1, 520, 9531]}),
    ("alora_by_a_text", "alora|invocation", {"alora_invocation_string": "<|start|>"}),
    ("alora_of_an_older_trainer", "alora|invocation", {"invocation_tokens": [1, 520, 9531]}),
    ("replicated_layers", "layer_replication", {"layer_replication": [[0, 20], [10, 30]]}),
    ("expert_parameters", "expert|target_parameters", {"target_parameters": ["mlp.experts.gate_up_proj"]}),
    ("block_diagonal", "BD-LoRA|block", {"use_bdlora": {"nblocks": 2, "match_strict": False}}),
    ("pooled", "QALoRA", {"use_qalora": True, "qalora_group_size": 16}),
    ("megatron", "megatron", {"megatron_config": {"tensor_parallel": 2}}),
    ("a_variant_of_tomorrow", "unknown setting", {"use_tomorrow": True}),
    (
        "a_module_to_import",
        "auto_mapping",
        {"auto_mapping": {"parent_library": "antigravity"}},
    ),
    ("no_type", "peft_type", {"peft_type": DROPPED}),
    ("loha", "LOHA|type", {"peft_type": "LOHA"}),
    ("adalora", "ADALORA|type", {"peft_type": "ADALORA"}),
    ("prompt_tuning", "PROMPT_TUNING|type", {"peft_type": "PROMPT_TUNING"}),
)
for _name, _reason, _changes in _UNSERVABLE:

    def _build(work: Workshop, changes: dict[str, object] = _changes) -> None:
        work.sound(**changes)

    _build.__name__ = _name
    CONFIGS.reject(_reason)(_build)


@BASES.reject("base")
def another_architecture_s_base(work: Workshop) -> None:
    work.sound(base_model_name_or_path="Qwen/Qwen2.5-0.5B-Instruct")


@BASES.reject("base")
def the_generation_before_with_the_same_shapes(work: Workshop) -> None:
    work.sound(base_model_name_or_path="HuggingFaceTB/SmolLM-135M-Instruct")


@BASES.reject("base|shape")
def another_size(work: Workshop) -> None:
    wide: Tensors = {}
    for layer in range(32):
        for module in ("q_proj", "v_proj"):
            wide |= work.pair(f"{ROOT}layers.{layer}.self_attn.{module}", 960, 960 if module == "q_proj" else 320)
    work.weights(wide)
    work.config(base_model_name_or_path="HuggingFaceTB/SmolLM2-360M-Instruct", target_modules=["q_proj", "v_proj"])
