"""Settings of adapter_config.json that change what the weights mean, as data: what engines can't serve, and why."""

from collections.abc import Mapping
from typing import Final

# PEFT's own, and what the first aLoRA trainers wrote.
ALORA_KEYS: Final = ("alora_invocation_tokens", "alora_invocation_string", "invocation_tokens", "invocation_string")
# Each sentence follows "adapter_config.json: ". Established on vLLM 0.32.0 and PEFT 0.21.2.
_ALORA: Final = "{} makes this an aLoRA, switched on by its invocation tokens, which engines apply to every token"
UNSERVABLE: Final[Mapping[str, str]] = {
    "use_dora": "use_dora is on, and engines can't serve DoRA: merge the adapter or train plain LoRA",
    "lora_bias": "lora_bias adds a bias, which engines drop: train with lora_bias off",
    "modules_to_save": "modules_to_save replaces whole layers, which engines can't do per request: train without it",
    "trainable_token_indices": "trainable_token_indices changes token embeddings, which engines can't do per request",
    **{key: _ALORA.format(key) for key in ALORA_KEYS},
    "layer_replication": "layer_replication builds a deeper model than the base: merge the adapter instead",
    "target_parameters": "target_parameters puts LoRA on fused MoE expert weights, which engines can't place: name "
    "linear layers in target_modules",
    "use_bdlora": "use_bdlora makes the weights block-diagonal (BD-LoRA), which engines don't look at",
    "use_qalora": "use_qalora pools the input of the adapter (QALoRA), which engines don't do",
    "kasa_config": "kasa_config makes this a KaSA adapter, whose diagonal and changed base engines don't look at",
    "arrow_config": "arrow_config routes between several adapters (Arrow), which engines don't do",
    "monteclora_config": "monteclora_config makes this a MonteCLoRA adapter, which engines don't look at",
    "megatron_config": "megatron_config says the weights are laid out for Megatron: save them in PEFT's own layout",
}
# Inits that leave the base alone, so that the saved weights are plain LoRA.
PLAIN_INITS: Final = frozenset({"gaussian", "eva", "orthogonal", "mica"})
CHANGED_BASE_INITS: Final = ("pissa", "olora", "corda", "loftq")
BOOLEANS: Final = ("use_dora", "use_rslora", "lora_bias", "fan_in_fan_out", "inference_mode", "use_qalora")
# Packages that auto_mapping may name: PEFT imports what stands there.
IMPORTED: Final = frozenset(
    {"diffusers", "peft", "sentence_transformers", "torch", "transformers", "transformers_modules", "trl", "unsloth"}
)
TASKS: Final = frozenset({"CAUSAL_LM"})
KNOWN: Final = frozenset(
    {
        *UNSERVABLE,
        *BOOLEANS,
        "alpha_pattern",
        "auto_mapping",
        "base_model_name_or_path",
        "bias",
        "corda_config",
        "enable_lora",
        "ensure_weight_tying",
        "eva_config",
        "exclude_modules",
        "init_lora_weights",
        "layers_pattern",
        "layers_to_transform",
        "loftq_config",
        "lora_alpha",
        "lora_dropout",
        "lora_ga_config",
        "megatron_core",
        "merge_weights",
        "peft_type",
        "peft_version",
        "qalora_group_size",
        "r",
        "rank_pattern",
        "revision",
        "runtime_config",
        "target_modules",
        "task_type",
        "unsloth_fixed",
        "velora_config",
    }
)
