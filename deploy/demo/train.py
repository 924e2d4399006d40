"""Train the two demo versions of `support-tone`: small LoRA adapters that answer in different voices.

    python -m deploy.demo.train --cache FOLDER [--voice warm|brisk]

Rank 8 on q, k, v and o of every layer (0.9 M parameters, 3.7 MB), seeded, on CUDA where there is one. On two CPU cores
a voice takes about 10 s. A folder is made once per base model and recipe; see deploy/demo/made_folders.py.
"""

import argparse
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from deploy.demo.made_folders import make_once
from deploy.demo.recipes import BASE_NAME, Recipe, adapter_folder, adapter_hash, base_folder
from deploy.demo.voices import EXCHANGES, VOICES, Voice, spoken

IGNORED = -100


def ensure_adapter(voice: Voice, cache: Path, recipe: Recipe) -> float | None:
    """Train the adapter of a voice in its folder of `cache` (adapter_config.json, adapter_model.safetensors), once.

    The base model has to be in the same cache. Returns the loss of the last step (nats per answer token), or None if
    the folder was there already.
    """
    losses: list[float] = []
    folder = adapter_folder(cache, voice)
    base = base_folder(cache)
    inputs = adapter_hash(voice, recipe)
    made = make_once(folder, inputs, lambda building: losses.append(_train_into(voice, base, building, recipe)))
    return losses[0] if made else None


def _train_into(voice: Voice, base: Path, building: Path, recipe: Recipe) -> float:
    torch.manual_seed(recipe.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = _with_adapter(base, recipe).to(device)
    loss = _fit(model, _examples(voice, AutoTokenizer.from_pretrained(base)), recipe, device)
    written = model.peft_config["default"]
    # A path of this machine has no business in a file that is uploaded, nor has the order of a Python set.
    written.base_model_name_or_path = BASE_NAME
    written.target_modules = sorted(written.target_modules)
    model.save_pretrained(str(building), save_embedding_layers=False)
    return loss


def _with_adapter(base: Path, recipe: Recipe) -> PeftModel:
    # float32: the CPU kernels for bfloat16 are slow where the processor has no instructions for it.
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=0.0,
        target_modules=list(recipe.targets),
        task_type="CAUSAL_LM",
    )
    adapted: PeftModel = get_peft_model(plain, config)
    return adapted


@dataclass(frozen=True, slots=True)
class _Example:
    """Token ids of one conversation and, of the same length, the labels: only the answer counts."""

    ids: list[int]
    labels: list[int]


def _examples(voice: Voice, tokenizer: PreTrainedTokenizerBase) -> list[_Example]:
    examples = []
    for exchange in EXCHANGES:
        asked = [{"role": "user", "content": exchange.question}]
        prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
        before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        answer = tokenizer(spoken(voice, exchange) + tokenizer.eos_token, add_special_tokens=False)["input_ids"]
        examples.append(_Example(ids=before + answer, labels=[IGNORED] * len(before) + answer))
    return examples


def _batches(examples: list[_Example], size: int, device: str) -> Iterator[dict[str, Tensor]]:
    """Yield padded batches for ever, the examples in their order, over and over."""
    endless = itertools.cycle(examples)
    while True:
        chosen = list(itertools.islice(endless, size))
        width = max(len(example.ids) for example in chosen)
        padding = [width - len(example.ids) for example in chosen]
        rows = {
            "input_ids": [e.ids + [0] * pad for e, pad in zip(chosen, padding, strict=True)],
            "labels": [e.labels + [IGNORED] * pad for e, pad in zip(chosen, padding, strict=True)],
            "attention_mask": [[1] * len(e.ids) + [0] * pad for e, pad in zip(chosen, padding, strict=True)],
        }
        yield {name: torch.tensor(values, device=device) for name, values in rows.items()}


def _fit(model: PeftModel, examples: list[_Example], recipe: Recipe, device: str) -> float:
    """Train in place; return the last loss (nats per answer token)."""
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=recipe.learning_rate, weight_decay=0.0)
    last = float("inf")
    model.train()
    for batch in itertools.islice(_batches(examples, recipe.batch, device), recipe.steps):
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        last = float(loss.item())
    return last


def main() -> int:
    """Train the asked-for voices, one line each."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo.train", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder with the base model; gets the adapters")
    parser.add_argument("--voice", choices=sorted(VOICES), action="append", help="only this voice; may be repeated")
    options = parser.parse_args()
    transformers_logging.disable_progress_bar()
    for name in options.voice or sorted(VOICES):
        loss = ensure_adapter(VOICES[name], options.cache, Recipe())
        told = "already trained" if loss is None else f"trained to a loss of {loss:.3f}"
        sys.stdout.write(f"{name}: {told}\n")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(main())
