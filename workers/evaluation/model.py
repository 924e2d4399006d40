"""A base model with adapters on it, run by transformers and peft: on CUDA where there is a device, else on CPUs."""

import inspect
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

# Everything that is loaded lies on this machine's disk; nothing may be asked of a hub, whatever a config names.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging as transformers_logging

from registry.base_models.description import TEMPLATE_FILE, TOKENIZER_FILES, BaseDescription
from workers.evaluation.bases import SCRATCH, SINGLE_BYTES, check_base, check_room, choose_bytes
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.ports import Answer, Score, Voice
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE
from workers.validation.report import several
from workers.validation.sandbox import fullmatches
from workers.validation.targets import ALL_LINEAR, PatternTable

MAX_TOKENS: Final = 1024
_LORA_KEYS: Final = (
    "r",
    "lora_alpha",
    "target_modules",
    "exclude_modules",
    "rank_pattern",
    "alpha_pattern",
    "layers_to_transform",
    "layers_pattern",
    "use_rslora",
    "use_dora",
    "fan_in_fan_out",
)
# Each may be a regular expression, which peft would match with every module of the base, for as long as that takes.
_PATTERN_KEYS: Final = ("target_modules", "exclude_modules")
# Of these peft matches every key with every module, and compiles it each time.
_TABLE_KEYS: Final = ("rank_pattern", "alpha_pattern")
# What of a base's folder is read: what makes its digest, the shards' index, and where answers end.
_GENERATION_FILE: Final = "generation_config.json"
_READ_FILES: Final = (
    "config.json",
    "model.safetensors.index.json",
    _GENERATION_FILE,
    TEMPLATE_FILE,
    *TOKENIZER_FILES,
)
_DIGITS: Final = 6
_MAX_SAID: Final = 300

logger = logging.getLogger(__name__)
transformers_logging.disable_progress_bar()


@dataclass(frozen=True, slots=True)
class LoadedBase:
    """A base in memory, with its tokenizer; `digest` is its revision's."""

    digest: str
    network: Any
    tokenizer: Any
    device: str


class Shelf:
    """The base that was used last, kept in memory: one at a time, since a second may not fit beside it."""

    def __init__(self, *, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._kept: LoadedBase | None = None

    def take(self, folder: Path, description: BaseDescription) -> LoadedBase:
        """The base in `folder`, loaded now unless it is the one that was used last.

        Args:
            folder: where it is.
            description: of the registered revision.

        Raises:
            NotPossibleError: it is another revision, doesn't fit into memory, or transformers can't load it.

        """
        digest = description.digest
        if self._kept is None or self._kept.digest != digest:
            self.clear()
            check_base(folder, digest=digest)
            self._kept = _load(folder, description, self._memory_bytes)
        return self._kept

    @staticmethod
    @contextmanager
    def voices_on(base: LoadedBase, folders: Mapping[Voice, Path]) -> Iterator["TorchModel"]:
        """The base with one adapter for each voice; taken off again, unless something went wrong meanwhile.

        Args:
            base: as `take` gave it.
            folders: adapters that the checks have accepted, each with its config and weights; at least one.

        Raises:
            NotPossibleError: they don't fit into memory, or peft can't load one of them.

        """
        if base.device == "cpu":
            check_room([folder / WEIGHTS_FILE for folder in folders.values()])
        adapted = _adapted(base, folders)
        yield TorchModel(base, adapted, (Voice.BASE, *folders))
        adapted.unload()

    def clear(self) -> None:
        """Let go of what is kept: after an error nobody knows what is left on it."""
        self._kept = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _load(folder: Path, description: BaseDescription, memory_bytes: int) -> LoadedBase:
    began = time.monotonic()
    device, dtype = _place(description, memory_bytes)
    try:
        with _view(folder, description) as seen:
            network, found = AutoModelForCausalLM.from_pretrained(
                seen,
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
            )
            tokenizer = AutoTokenizer.from_pretrained(seen, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # what a library says of a folder that it can't load has no one class
        logger.exception("the base in %s can't be loaded", folder)
        raise NotPossibleError(f"transformers can't load the base: {_said(error)}") from error
    if lacking := sorted(found["missing_keys"]):
        # Transformers fills them up with random numbers, which no engine would have.
        raise NotPossibleError(f"the base as transformers knows it lacks weights: {several(lacking)}")
    network = network.to(device).eval()
    # Penalties, beams or forbidden tokens of the folder would make other answers than the most likely ones.
    network.generation_config = GenerationConfig(eos_token_id=network.generation_config.eos_token_id)
    logger.info("loaded %s on %s as %s in %.1f s", folder.name, device, network.dtype, time.monotonic() - began)
    return LoadedBase(description.digest, network, tokenizer, device)


@contextmanager
def _view(folder: Path, description: BaseDescription) -> Iterator[Path]:
    """The folder without what its digest doesn't cover: transformers would load adapters and templates as well."""
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as kept:
        seen = Path(kept)
        for name in (*_READ_FILES, *description.weight_files):
            if (folder / name).is_file():
                (seen / name).symlink_to((folder / name).resolve())
        yield seen


def _said(error: Exception) -> str:
    """What a library says, cut short, and without what no report can hold: it may quote the adapter."""
    text = f"{type(error).__name__}: {error}"[:_MAX_SAID]
    return "".join(char if char.isprintable() else " " for char in text)


def _place(description: BaseDescription, memory_bytes: int) -> tuple[str, "torch.dtype | str"]:
    """Where the base runs and in which precision; on a device as the engines do, in the precision it was saved in."""
    if torch.cuda.is_available():
        return "cuda", "auto"
    single = choose_bytes(description, most=memory_bytes) == SINGLE_BYTES
    return "cpu", torch.float32 if single else "auto"


def _adapted(base: LoadedBase, folders: Mapping[Voice, Path]) -> Any:  # noqa: ANN401  peft is untyped
    names = [name for name, _ in base.network.named_modules() if name]
    try:
        configs = {voice: _lora_config(folder, names) for voice, folder in folders.items()}
        (first, config), *others = configs.items()
        adapted = get_peft_model(base.network, config, adapter_name=first.value)
        for voice, other in others:
            adapted.add_adapter(voice.value, other)
        for voice, each in folders.items():
            _fill(adapted, voice, load_file(each / WEIGHTS_FILE, device=base.device))
    except Exception as error:  # as above
        logger.exception("an adapter can't be loaded")
        raise NotPossibleError(f"peft can't load it: {_said(error)}") from error
    return adapted.eval()


def _lora_config(folder: Path, modules: Sequence[str]) -> LoraConfig:
    """What decides how a LoRA is computed, and nothing else: other keys make peft import modules, or look for files."""
    content = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    known = {key: content[key] for key in _LORA_KEYS if content.get(key) is not None}
    for key in _PATTERN_KEYS:
        if isinstance(known.get(key), str) and known[key] != ALL_LINEAR:
            known[key] = sorted(fullmatches(known[key], modules))
    for key in _TABLE_KEYS:
        if key in known:
            decisive = set(PatternTable.read({each: each for each in known[key]}).values(modules).values())
            known[key] = {each: value for each, value in known[key].items() if each in decisive}
    return LoraConfig(**known, lora_dropout=0.0, task_type="CAUSAL_LM", inference_mode=True)


def _fill(adapted: Any, voice: Voice, tensors: dict[str, Tensor]) -> None:  # noqa: ANN401  peft is untyped
    """Put the weights in their places. Raises ``ValueError`` if one is left over or a place stays empty."""
    found = set_peft_model_state_dict(adapted, tensors, adapter_name=voice.value)
    empty = [key for key in found.missing_keys if f".{voice.value}" in key and "lora_" in key]
    if found.unexpected_keys or empty:
        raise ValueError(f"the weights don't fit the config: {[*found.unexpected_keys, *empty][:3]}")


class TorchModel:
    """`workers.evaluation.ports.Model`, one example at a time but for answers, which are made together."""

    def __init__(self, base: LoadedBase, adapted: Any, voices: tuple[Voice, ...]) -> None:  # noqa: ANN401  peft is untyped
        self.voices = voices
        self._base = base
        self._adapted = adapted
        self._longest = _longest(base.network.config)
        self._keeps_logits = "logits_to_keep" in inspect.signature(base.network.forward).parameters

    @property
    def facts(self) -> dict[str, str]:
        releases = {name: version(name) for name in ("torch", "transformers", "peft")}
        return {"device": self._base.device, "dtype": str(self._base.network.dtype).removeprefix("torch."), **releases}

    def read(self, text: str) -> dict[Voice, tuple[float, ...]]:
        tokens = self._base.tokenizer(text)["input_ids"]
        scores = self._score(tokens, start=1)
        return {voice: score.log_probabilities for voice, score in scores.items()}

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self._base.tokenizer(text, add_special_tokens=False)["input_ids"])

    def fits(self, prompt: str, *, more: int) -> bool:
        return len(self._asked(prompt)) + more <= self._longest

    def score(self, prompt: str, tokens: Sequence[int]) -> dict[Voice, Score]:
        asked = self._asked(prompt)
        return self._score([*asked, *tokens], start=len(asked))

    def answer(self, prompts: Sequence[str], voice: Voice, *, most: Sequence[int]) -> tuple[Answer, ...]:
        if not prompts:
            return ()
        rows = [self._asked(prompt) for prompt in prompts]
        width = max(map(len, rows))
        padding, ends = self._padding(), self._ends()
        ids = [[padding] * (width - len(row)) + row for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        greedy = GenerationConfig(
            max_new_tokens=max(most), do_sample=False, pad_token_id=padding, eos_token_id=sorted(ends) or None
        )
        with torch.inference_mode(), self._speaking(voice):
            made = self._adapted.generate(
                input_ids=self._tensor(ids), attention_mask=self._tensor(mask), generation_config=greedy
            )
        rows = made.tolist()
        return tuple(self._told(row[width : width + each], ends) for row, each in zip(rows, most, strict=True))

    def _score(self, tokens: Sequence[int], *, start: int) -> dict[Voice, Score]:
        """How every voice reads the tokens from `start` on (at least 1); the base first, the others beside it."""
        wanted = self._tensor(tokens[start:])
        base = self._distributions(Voice.BASE, tokens, len(wanted))
        found: dict[Voice, Score] = {}
        for voice in self.voices:
            own = base if voice is Voice.BASE else self._distributions(voice, tokens, len(wanted))
            chosen = own.gather(1, wanted[:, None])[:, 0].clamp(max=0)
            # A token that the model never says (minus infinity in both) adds nothing.
            divergences = torch.where(own.isneginf(), 0.0, own.exp() * (own - base)).sum(-1).clamp(min=0)
            found[voice] = Score(
                log_probabilities=_numbers(chosen),
                hits=tuple((own.argmax(-1) == wanted).tolist()),
                divergences=_numbers(divergences),
            )
        return found

    def _distributions(self, voice: Voice, tokens: Sequence[int], count: int) -> Tensor:
        """The voice's log-probabilities of every token of the vocabulary, at each of the last `count` places."""
        more = {"logits_to_keep": count + 1} if self._keeps_logits else {}
        with torch.inference_mode(), self._speaking(voice):
            logits = self._adapted(input_ids=self._tensor([tokens]), **more).logits[0]
        return logits[-count - 1 : -1].float().log_softmax(-1)

    @contextmanager
    def _speaking(self, voice: Voice) -> Iterator[None]:
        if voice is Voice.BASE:
            with self._adapted.disable_adapter():
                yield
        else:
            self._adapted.set_adapter(voice.value)
            yield

    def _asked(self, prompt: str) -> list[int]:
        """The tokens of a prompt as an engine sees it: as a user's message where the base has a chat template."""
        tokenizer = self._base.tokenizer
        if not tokenizer.chat_template:
            return list(tokenizer(prompt)["input_ids"])
        message = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    def _told(self, row: Sequence[int], ends: frozenset[int]) -> Answer:
        end = next((place for place, token in enumerate(row) if token in ends), len(row))
        text = self._base.tokenizer.decode(row[:end], skip_special_tokens=True)
        return Answer(text=text, tokens=tuple(row[: end + 1]))

    def _ends(self) -> frozenset[int]:
        """The tokens that end an answer: one, several, or none."""
        named = self._base.network.generation_config.eos_token_id
        found = named if isinstance(named, list) else [named]
        return frozenset(token for token in (*found, self._base.tokenizer.eos_token_id) if token is not None)

    def _padding(self) -> int:
        """Any token: what it stands for is masked."""
        named = self._base.tokenizer.pad_token_id
        return 0 if named is None else int(named)

    def _tensor(self, values: Sequence[Any]) -> Tensor:
        return torch.tensor(values, device=self._base.device)


def _longest(config: Any) -> int:  # noqa: ANN401  transformers is untyped
    return min(MAX_TOKENS, getattr(config, "max_position_embeddings", None) or MAX_TOKENS)


def _numbers(values: Tensor) -> tuple[float, ...]:
    return tuple(round(value, _DIGITS) for value in values.tolist())
