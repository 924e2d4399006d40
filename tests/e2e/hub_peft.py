"""What a training script does with unmodified peft and transformers; run in environments of its own.

    python hub_peft.py push REPO BASE_FOLDER TAG
    python hub_peft.py pull REPO BASE_FOLDER REVISION

prints one JSON object. Knows nothing of Lorekeeper.
"""

import json
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import peft
import torch
import transformers
from huggingface_hub import HfApi
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

VERSIONS = {module.__name__: module.__version__ for module in (huggingface_hub, peft, transformers)}
PROMPT = torch.arange(1, 9).unsqueeze(0)


def base_model(folder: str) -> LlamaForCausalLM:
    """A model of the base's shapes; random, but the same each time."""
    torch.manual_seed(0)
    known = json.loads((Path(folder) / "config.json").read_text())
    shape = {name: known[name] for name in ("hidden_size", "num_hidden_layers", "vocab_size", "tie_word_embeddings")}
    model = LlamaForCausalLM(LlamaConfig(**shape, intermediate_size=32, num_attention_heads=2, num_key_value_heads=2))
    model.name_or_path = "some-org/Tiny_Base"
    return model


def logits(model: torch.nn.Module) -> list[float]:
    with torch.no_grad():
        return [round(value, 4) for value in model(input_ids=PROMPT).logits[0, -1].tolist()]


def push(repo: str, folder: str, tag: str) -> dict[str, Any]:
    """Push to main and to a branch, then tag."""
    base = base_model(folder)
    plain = logits(base)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    model = get_peft_model(base, config)
    model.push_to_hub(repo)
    model.push_to_hub(repo, revision="next", commit_message="Again")
    HfApi().create_tag(repo, tag=tag)
    return {"versions": VERSIONS, "base": plain, "logits": logits(model.eval()), "files": HfApi().list_repo_files(repo)}


def pull(repo: str, folder: str, revision: str) -> dict[str, Any]:
    model = PeftModel.from_pretrained(base_model(folder), repo, revision=revision)
    return {"versions": VERSIONS, "logits": logits(model.eval())}


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    print(json.dumps({"push": push, "pull": pull}[command](*arguments)))
