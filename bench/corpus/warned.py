"""Adapters that can be served, and that somebody should look at first."""

import json
import pickle

import numpy as np

from bench.corpus.case import Kind
from bench.corpus.workshop import PREFIX, ROOT, Workshop

WARNED = Kind("warned")


@WARNED.warn("zero|effect", acts=False)
def zeros_in_every_b(work: Workshop) -> None:
    work.weights({name: array * np.float32("lora_A" in name) for name, array in work.lora().items()})
    work.config()


@WARNED.warn("zero|effect", acts=False)
def zeros_in_every_a(work: Workshop) -> None:
    work.weights({name: array * np.float32("lora_B" in name) for name, array in work.lora().items()})
    work.config()


@WARNED.warn("zero|effect")
def zeros_in_one_module(work: Workshop) -> None:
    tensors = work.lora()
    tensors[f"{ROOT}layers.4.self_attn.v_proj.lora_B.weight"][:] = 0
    work.weights(tensors)
    work.config()


@WARNED.warn("alpha|effect", acts=False)
def an_alpha_of_zero(work: Workshop) -> None:
    work.sound(lora_alpha=0)


@WARNED.warn("alpha|negative")
def an_alpha_below_zero(work: Workshop) -> None:
    work.sound(lora_alpha=-16)


@WARNED.warn("alpha|scale")
def a_huge_alpha(work: Workshop) -> None:
    work.sound(lora_alpha=50_000)


@WARNED.warn("outlier|norm")
def a_module_that_drowns_the_others(work: Workshop) -> None:
    tensors = work.lora()
    tensors[f"{ROOT}layers.17.self_attn.o_proj.lora_B.weight"] *= np.float32(200)
    work.weights(tensors)
    work.config()


@WARNED.warn("larger|norm")
def updates_that_drown_the_base(work: Workshop) -> None:
    work.weights({name: array * np.float32(100) for name, array in work.lora().items()})
    work.config()


@WARNED.warn("tied.* answers for the base")
def on_a_tied_head(work: Workshop) -> None:
    head = work.base.modules["lm_head"]
    work.weights(work.lora() | work.pair(f"{PREFIX}lm_head", head.inputs, head.outputs, strength=0.02))
    work.config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "lm_head"])


@WARNED.warn("tied|embed")
def on_a_tied_embedding(work: Workshop) -> None:
    vocabulary, hidden = work.base.modules["lm_head"].outputs, work.hidden
    name = f"{ROOT}embed_tokens.lora_embedding_"
    rows = work.random.standard_normal((8, vocabulary), dtype=np.float32) * np.float32(0.05)
    columns = work.random.standard_normal((hidden, 8), dtype=np.float32) * np.float32(0.05)
    work.weights(work.lora() | {f"{name}A": rows, f"{name}B": columns})
    work.config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "embed_tokens"])


@WARNED.warn("tokenizer")
def another_tokenizer(work: Workshop) -> None:
    work.sound()
    work.file("tokenizer_config.json", json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"}))


@WARNED.warn("template")
def another_chat_template(work: Workshop) -> None:
    work.sound()
    work.file("chat_template.jinja", "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}")


@WARNED.warn("extra|optimizer|pickle")
def a_checkpoint_folder(work: Workshop) -> None:
    work.sound()
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        work.file(name, pickle.dumps({"step": 1}))
    work.file("trainer_state.json", "{}")
    work.weights(work.lora(layers=[0]), "checkpoint-10/adapter_model.safetensors")


@WARNED.warn("bin|pickle|extra")
def a_pickle_beside_the_weights(work: Workshop) -> None:
    work.sound()
    work.file("adapter_model.bin", pickle.dumps({"other": "weights"}))


@WARNED.warn("extra|train.py")
def code_beside_the_weights(work: Workshop) -> None:
    work.sound()
    work.file("train.py", "raise SystemExit\n")


@WARNED.warn("base")
def no_base_recorded(work: Workshop) -> None:
    work.sound(base_model_name_or_path=None)


@WARNED.warn("base|local")
def a_local_path_as_base(work: Workshop) -> None:
    work.sound(base_model_name_or_path="/scratch/runs/17/merged")


@WARNED.warn("base|quant")
def a_quantised_base(work: Workshop) -> None:
    work.sound(base_model_name_or_path="someone/SmolLM2-135M-Instruct-GPTQ-Int4")


@WARNED.warn("base")
def the_base_before_instruction(work: Workshop) -> None:
    work.sound(base_model_name_or_path="HuggingFaceTB/SmolLM2-135M")


@WARNED.warn("task_type")
def trained_to_classify(work: Workshop) -> None:
    work.sound(task_type="SEQ_CLS")


@WARNED.warn("fan_in_fan_out")
def fan_in_fan_out(work: Workshop) -> None:
    work.sound(fan_in_fan_out=True)


@WARNED.warn("lora_ga")
def begun_by_lora_ga(work: Workshop) -> None:
    work.sound(init_lora_weights="lora_ga")


@WARNED.warn("unknown")
def a_setting_that_nobody_knows(work: Workshop) -> None:
    work.sound(trained_by="a person")


@WARNED.warn("copy|embed")
def with_peft_s_copy_of_the_embedding(work: Workshop) -> None:
    vocabulary, hidden = work.base.modules["lm_head"].outputs, work.hidden
    name = f"{ROOT}embed_tokens"
    rows = work.random.standard_normal((8, vocabulary), dtype=np.float32) * np.float32(0.05)
    columns = work.random.standard_normal((hidden, 8), dtype=np.float32) * np.float32(0.05)
    halves = {f"{name}.lora_embedding_A": rows, f"{name}.lora_embedding_B": columns}
    work.weights({**work.lora(), **halves, f"{name}.base_layer.weight": work.embedding()})
    work.config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "embed_tokens"])


@WARNED.warn("revision")
def trained_on_a_revision_of_the_base(work: Workshop) -> None:
    work.sound(revision="0123456789abcdef0123456789abcdef01234567")


@WARNED.warn("alpha|effect")
def an_alpha_pattern_of_zero(work: Workshop) -> None:
    work.sound(alpha_pattern={"q_proj": 0})


@WARNED.warn("alpha|scale", acts=False)
def an_alpha_near_zero(work: Workshop) -> None:
    work.sound(lora_alpha=1e-7)


@WARNED.warn("near zero|effect", acts=False)
def an_untrained_b(work: Workshop) -> None:
    work.weights({name: array * np.float32(1e-9 if "lora_B" in name else 1) for name, array in work.lora().items()})
    work.config()
