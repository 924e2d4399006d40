"""What of an adapter makes a difference between engines, read from its config, its keys and its values."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from registry.base_models.modules import HEAD, template
from workers.validation.checks import companions, features, numerics
from workers.validation.kinds import ADDED_TOKENS_FILE, NEW_EMBEDDINGS_FILE
from workers.validation.pairs import true_rank
from workers.validation.report import shown
from workers.validation.subject import Subject
from workers.validation.targets import ALL_LINEAR


class Trait(StrEnum):
    """The row of the engine table that an adapter stands in; most adapters stand in none."""

    OTHER_TYPE = "other_type"
    DORA = "dora"
    BIAS = "bias"
    MODULES_TO_SAVE = "modules_to_save"
    CHANGED_BASE = "changed_base"
    TOKENS = "trainable_tokens"
    ALORA = "alora"
    ALORA_OTHERWISE = "alora_otherwise"
    REPLICATION = "layer_replication"
    EXPERTS = "experts"
    BLOCK_DIAGONAL = "bdlora"
    POOLED = "qalora"
    VARIANT = "variant"
    NEW_TOKENS = "new_tokens"
    ADDED_TOKENS = "added_tokens"
    RSLORA = "rslora"
    RANK_PATTERN = "rank_pattern"
    ALPHA_PATTERN = "alpha_pattern"
    PATTERN_TARGETS = "pattern_targets"
    ALL_LINEAR = "all_linear"
    EMBEDDING = "embedding"
    HEAD = "head"
    TIED_HEAD = "tied_head"
    SOME_LAYERS = "some_layers"
    RANK_STEP = "rank_step"
    RANK_LIMIT = "rank_limit"
    MISPLACED = "misplaced"
    MISSHAPEN = "misshapen"
    NOT_FINITE = "not_finite"


# Settings that make a trait when they are on.
_SETTINGS: Final[Mapping[str, Trait]] = {
    "use_dora": Trait.DORA,
    "lora_bias": Trait.BIAS,
    "modules_to_save": Trait.MODULES_TO_SAVE,
    "trainable_token_indices": Trait.TOKENS,
    # vLLM looks at the first alone, and passes over the invocation as a text and the names of older trainers.
    **dict.fromkeys(features.ALORA_KEYS, Trait.ALORA_OTHERWISE),
    features.ALORA_KEYS[0]: Trait.ALORA,
    "layer_replication": Trait.REPLICATION,
    "target_parameters": Trait.EXPERTS,
    "use_bdlora": Trait.BLOCK_DIAGONAL,
    "use_qalora": Trait.POOLED,
    "kasa_config": Trait.VARIANT,
    "arrow_config": Trait.VARIANT,
    "monteclora_config": Trait.VARIANT,
    "use_rslora": Trait.RSLORA,
    "rank_pattern": Trait.RANK_PATTERN,
    "alpha_pattern": Trait.ALPHA_PATTERN,
}
# The kernels that TGI and LoRAX share pad every other rank.
_UNPADDED_RANK: Final = 8
_RANK_BLOCK: Final = 16


def traits_of(subject: Subject) -> dict[Trait, str]:
    """Every trait of the adapter with what shows it: a setting, a module, a rank."""
    found: dict[Trait, str] = {}
    for trait, sign in (*_of_config(subject), *_of_ranks(subject), *_of_modules(subject), *_of_values(subject)):
        found.setdefault(trait, sign)
    return found


def _of_config(subject: Subject) -> Iterator[tuple[Trait, str]]:
    content = subject.config.content or {}
    if content.get("peft_type") != "LORA":
        yield Trait.OTHER_TYPE, f"peft_type {shown(repr(content.get('peft_type')))}"
    for key, trait in _SETTINGS.items():
        if content.get(key):
            yield trait, key
    if content.get("bias", "none") != "none":
        yield Trait.BIAS, "bias"
    init = content.get("init_lora_weights")
    if isinstance(init, str) and init.lower().startswith(features.CHANGED_BASE_INITS):
        yield Trait.CHANGED_BASE, f"init_lora_weights {shown(repr(init))}"
    targets = subject.settings.targets
    if isinstance(targets, str):
        yield (Trait.ALL_LINEAR if targets == ALL_LINEAR else Trait.PATTERN_TARGETS), "target_modules"
    if NEW_EMBEDDINGS_FILE in subject.listing.files:
        yield Trait.NEW_TOKENS, NEW_EMBEDDINGS_FILE
    if ADDED_TOKENS_FILE in companions.tokens_beyond(subject):
        yield Trait.ADDED_TOKENS, ADDED_TOKENS_FILE


def _of_ranks(subject: Subject) -> Iterator[tuple[Trait, str]]:
    ranks = {rank for pair in subject.layout.pairs.values() if (rank := true_rank(pair)) is not None}
    ranks |= {subject.settings.rank} if subject.settings.rank else set()
    for rank in sorted(ranks, reverse=True):
        if rank > subject.limits.max_rank:
            yield Trait.RANK_LIMIT, f"rank {rank}"
        if rank % _RANK_BLOCK and rank != _UNPADDED_RANK:
            yield Trait.RANK_STEP, f"rank {rank}"


def _of_modules(subject: Subject) -> Iterator[tuple[Trait, str]]:
    pairs, base = subject.layout.pairs, subject.modules
    for name, pair in pairs.items():
        module = base.modules.get(name)
        if module is None:
            yield Trait.MISPLACED, shown(name)
        elif module.is_embedding:
            yield Trait.EMBEDDING, shown(name)
        if module is not None and (true_rank(pair) is None or not _fits(subject, name)):
            yield Trait.MISSHAPEN, shown(name)
    if subject.layout.strays:
        yield Trait.MISPLACED, shown(subject.layout.strays[0])
    if HEAD in pairs and HEAD in base.modules:
        yield Trait.HEAD, HEAD
    if base.is_head_tied and pairs.keys() & base.outputs:
        yield Trait.TIED_HEAD, HEAD
    partial = _in_some_layers(subject)
    if partial:
        yield Trait.SOME_LAYERS, shown(partial)


def _fits(subject: Subject, name: str) -> bool:
    pair, module = subject.layout.pairs[name], subject.modules.modules[name]
    return (
        pair.a is not None
        and pair.b is not None
        and (pair.a.shape[1:], pair.b.shape[:1]) == ((module.inputs,), (module.outputs,))
    )


def _in_some_layers(subject: Subject) -> str | None:
    """The last part of a module name that has weights in some layers of the base and not in others."""
    touched = {template(name) for name in subject.layout.pairs if name in subject.modules.modules}
    for name in subject.modules.modules:
        if name not in subject.layout.pairs and template(name) in touched:
            return name.rpartition(".")[2]
    return None


def _of_values(subject: Subject) -> Iterator[tuple[Trait, str]]:
    poison = numerics.poisonous(subject)
    if poison:
        yield Trait.NOT_FINITE, shown(poison)
