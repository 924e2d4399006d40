"""Adapters that are served as they were trained: nothing may be said against them."""

import json
import shutil

import numpy as np

from bench.corpus.case import Kind
from bench.corpus.workshop import ATTENTION, DROPPED, MLP, Workshop, bfloat16

SOUND = Kind("sound")


@SOUND.accept
def plain(work: Workshop) -> None:
    work.sound()


@SOUND.accept
def in_bfloat16(work: Workshop) -> None:
    work.weights({name: bfloat16(array) for name, array in work.lora().items()})
    work.config()


@SOUND.accept
def in_float16(work: Workshop) -> None:
    work.weights({name: array.astype(np.float16) for name, array in work.lora().items()})
    work.config()


@SOUND.accept
def in_two_types(work: Workshop) -> None:
    work.weights({name: bfloat16(array) if "lora_A" in name else array for name, array in work.lora().items()})
    work.config()


@SOUND.accept
def of_rank_1(work: Workshop) -> None:
    work.weights(work.lora(1, strength=0.3))
    work.config(r=1, lora_alpha=2)


@SOUND.accept
def of_rank_12(work: Workshop) -> None:
    work.weights(work.lora(12))
    work.config(r=12, lora_alpha=24)


@SOUND.accept
def of_the_largest_rank(work: Workshop) -> None:
    work.weights(work.lora(16))
    work.config(r=16, lora_alpha=32)


@SOUND.accept
def on_all_linear(work: Workshop) -> None:
    work.weights(work.lora(8, (*ATTENTION, *MLP), strength=0.04))
    work.config(target_modules="all-linear")


@SOUND.accept
def on_the_mlp(work: Workshop) -> None:
    work.weights(work.lora(8, MLP))
    work.config(target_modules=["gate_proj", "up_proj", "down_proj"])


@SOUND.accept
def on_one_module(work: Workshop) -> None:
    work.weights(work.lora(8, ["mlp.down_proj"], strength=0.15))
    work.config(target_modules=["down_proj"])


@SOUND.accept
def by_a_pattern(work: Workshop) -> None:
    work.weights(work.lora(8, ["self_attn.q_proj", "self_attn.v_proj"], strength=0.12))
    work.config(target_modules=r"model\.layers\.\d+\.self_attn\.(q|v)_proj")


@SOUND.accept
def in_some_layers(work: Workshop) -> None:
    work.weights(work.lora(8, layers=range(10, 20), strength=0.12))
    work.config(layers_to_transform=list(range(10, 20)), layers_pattern="layers")


@SOUND.accept
def with_modules_left_out(work: Workshop) -> None:
    work.weights(work.lora(8, MLP))
    work.config(target_modules="all-linear", exclude_modules=["q_proj", "k_proj", "v_proj", "o_proj"])


@SOUND.accept
def with_a_rank_pattern(work: Workshop) -> None:
    work.weights(work.lora(4, ["self_attn.k_proj", "self_attn.v_proj"]) | work.lora(12, ["self_attn.q_proj"]))
    work.config(r=4, lora_alpha=8, rank_pattern={"q_proj": 12}, target_modules=["q_proj", "k_proj", "v_proj"])


@SOUND.accept
def with_an_alpha_pattern(work: Workshop) -> None:
    work.sound(alpha_pattern={r"layers\.\d+\.self_attn\.o_proj": 64})


@SOUND.accept
def with_rslora(work: Workshop) -> None:
    work.weights(work.lora(8, strength=0.03))
    work.config(use_rslora=True)


@SOUND.accept
def with_a_broken_alpha(work: Workshop) -> None:
    work.sound(lora_alpha=12.5)


@SOUND.accept
def begun_as_gaussian(work: Workshop) -> None:
    work.sound(init_lora_weights="gaussian")


@SOUND.accept
def begun_by_eva(work: Workshop) -> None:
    work.sound(init_lora_weights="eva", eva_config={"rho": 2.0, "tau": 0.99})


@SOUND.accept
def with_documents(work: Workshop) -> None:
    work.sound()
    work.file("README.md", "---\nbase_model: x\n---\n# Adapter\n")
    work.file("LICENSE", "Apache-2.0\n")


@SOUND.accept
def with_the_base_s_own_tokenizer(work: Workshop) -> None:
    work.sound()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(work.base_folder / name, work.folder / name)


@SOUND.accept
def with_settings_of_tomorrow_switched_off(work: Workshop) -> None:
    work.sound(tomorrow_config=None, use_tomorrow=False, tomorrow_map={}, peft_version="0.99.0")


@SOUND.accept
def with_targets_that_the_base_lacks(work: Workshop) -> None:
    work.sound(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "w_pack"])


@SOUND.accept
def with_the_least_of_a_config(work: Workshop) -> None:
    work.weights(work.lora())
    content = {
        "peft_type": "LORA",
        "base_model_name_or_path": "smollm2-135m-instruct",
        "r": 8,
        "lora_alpha": 16,
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
    }
    work.file("adapter_config.json", json.dumps(content))


@SOUND.accept
def of_an_older_peft(work: Workshop) -> None:
    newer = ("use_dora", "use_rslora", "rank_pattern", "alpha_pattern", "loftq_config", "megatron_config", "lora_bias")
    work.sound(**dict.fromkeys(newer, DROPPED), enable_lora=None, merge_weights=False)


@SOUND.accept
def with_the_files_of_a_clone(work: Workshop) -> None:
    work.sound()
    work.file(".gitattributes", "*.safetensors filter=lfs diff=lfs merge=lfs -text\n")


@SOUND.accept
def in_every_other_layer(work: Workshop) -> None:
    work.weights(work.lora(8, layers=range(0, work.base.layers, 2), strength=0.1))
    work.config()


@SOUND.accept
def by_unsloth_s_pattern(work: Workshop) -> None:
    layers = r"(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|attention|attn|mlp)\.(?:(?:k_proj|v_proj|q_proj|o_proj)))"
    vision = r"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:k_proj|v_proj|q_proj|o_proj).*?)"
    work.sound(target_modules=f"{vision}|{layers}", unsloth_fixed=True)


@SOUND.accept
def with_a_rank_pattern_of_full_names(work: Workshop) -> None:
    name = "model.layers.0.self_attn.q_proj"
    work.weights(work.lora() | work.lora(4, ["self_attn.q_proj"], [0]))
    work.config(rank_pattern={f"^{name}": 4}, alpha_pattern={f"^{name}": 8})
