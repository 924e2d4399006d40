"""A real model of a few thousand weights, with a tokenizer of bytes, and LoRA adapters that peft has made for it."""

import json
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

# A second thread costs more than it helps with weights as few as these.
torch.set_num_threads(1)
NAME = "tiny-llama"
END = 0
_TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def write_tiny_model(folder: Path, *, seed: int = 0, chat: bool = True) -> Path:
    """Write a random two-layer Llama over bytes, as an operator would register it."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=END,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = _byte_tokenizer()
    if chat:
        tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


def tiny_adapter(
    base: Path, *, seed: int = 1, strength: float = 0.5, rank: int = 4, embeds: bool = False
) -> dict[str, bytes]:
    """The files of an adapter on q and v, and on the embedding if it ``embeds``; of strength 0 it changes nothing."""
    torch.manual_seed(seed)
    targets = ["q_proj", "v_proj", *(["embed_tokens"] if embeds else [])]
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets, task_type="CAUSAL_LM")
    model = get_peft_model(LlamaForCausalLM.from_pretrained(base), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=strength) if strength else parameter.data.zero_()
    written = model.peft_config["default"]
    written.base_model_name_or_path = NAME
    folder = base.parent / f"adapter-{seed}-{strength}-{rank}-{embeds}"
    model.save_pretrained(str(folder), save_embedding_layers=embeds)
    files = {name: (folder / name).read_bytes() for name in ("adapter_config.json", "adapter_model.safetensors")}
    content = json.loads(files["adapter_config.json"])
    content["target_modules"] = sorted(content["target_modules"])
    return {**files, "adapter_config.json": json.dumps(content).encode()}


def _byte_tokenizer() -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<end>": END, **{char: number for number, char in enumerate(alphabet, start=1)}}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<end>")
