"""The engine table: for each kind of adapter, what each engine does with it, and on what that knowledge rests.

A kind that is missing from a row's cells is served as trained, as far as is known. vLLM's cells were measured with real
adapters on the CPU build of the version named, TGI's and LoRAX's are read in their source. Of SGLang only the config
class, the way it scales and what it admits were read; its other cells say what follows from them, and are marked as
inferred. Whoever checks a newer version changes the version and the cells here, and raises POLICY_VERSION.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from workers.validation.engines.traits import Trait


class Effect(StrEnum):
    """What comes of an adapter on an engine; only the first three are serving."""

    SERVES = "serves"
    NEEDS = "needs a setting"
    LEAKS = "serves, and may change the base's own answers"
    REFUSES = "refuses"
    DROPS = "drops a part in silence"
    DISTORTS = "serves something else than was trained"
    POISONS = "spoils every other adapter on it"

    @property
    def is_serving(self) -> bool:
        """Whether the answers are those that were trained."""
        return self in {Effect.SERVES, Effect.NEEDS, Effect.LEAKS}


class Basis(StrEnum):
    """How a cell is known. Inferred: it follows from what was read of the engine, and nobody has seen it happen."""

    MEASURED = "measured"
    READ = "read in its source"
    REPORTED = "reported in its issue tracker"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: the version the table speaks of, and how those of its cells are known that don't say otherwise."""

    key: str
    name: str
    version: str
    basis: Basis


@dataclass(frozen=True, slots=True)
class Cell:
    """What an engine does; `sentence` follows the engine's name; `basis` is the engine's own where it is None."""

    effect: Effect
    sentence: str
    basis: Basis | None = None


ENGINES: Final = (
    Engine("vllm", "vLLM", "0.32.0", Basis.MEASURED),
    Engine("tgi", "TGI", "3.3", Basis.READ),
    Engine("sglang", "SGLang", "0.5", Basis.INFERRED),
    Engine("lorax", "LoRAX", "0.12", Basis.READ),
)


def _refuses(sentence: str, basis: Basis | None = None) -> Cell:
    return Cell(Effect.REFUSES, sentence, basis)


def _drops(sentence: str) -> Cell:
    return Cell(Effect.DROPS, sentence)


def _distorts(sentence: str, basis: Basis | None = None) -> Cell:
    return Cell(Effect.DISTORTS, sentence, basis)


def _both(cell: Cell) -> dict[str, Cell]:
    """TGI's adapter code is LoRAX's of 2024, and does the same."""
    return {"tgi": cell, "lorax": cell}


_WHOLE_ALORA: Final = _distorts("applies an aLoRA to every token, not from its invocation on")

# vLLM's CPU kernel for the head looks up the slot of a request without an adapter, -1, which in torch is the last one.
# The other CPU kernels return early where such a request is alone, and the GPU's always: there the base keeps its
# answers. Which slot an adapter comes to lie in depends on what was asked for before it. What other adapters answer
# stays right. Measured on a tied head; one that isn't goes through the same code, and the GPU's was read alone.
_LEAKS: Final = Cell(
    Effect.LEAKS, "in its CPU build answers for the base with LoRA on the head too, while that lies in the last slot"
)
_POISONS: Final = Cell(Effect.POISONS, "accepts it, and answers NaN to every request from then on")

TABLE: Final[Mapping[Trait, Mapping[str, Cell]]] = {
    Trait.OTHER_TYPE: {
        "vllm": _refuses("never looks at peft_type, and refuses what lacks LoRA's own settings"),
        "sglang": _refuses("takes only LORA", Basis.READ),
        **_both(_refuses("reads the config with PEFT's LoRA class, which refuses another type")),
    },
    Trait.DORA: {
        "vllm": _refuses("refuses DoRA"),
        "sglang": _refuses("refuses DoRA", Basis.READ),
        **_both(_drops("drops DoRA's magnitudes in silence")),
    },
    Trait.BIAS: {
        "vllm": _refuses("refuses a trained bias"),
        "sglang": _drops("drops a trained bias in silence"),
        **_both(_drops("drops a trained bias in silence")),
    },
    Trait.MODULES_TO_SAVE: {
        "vllm": _refuses("refuses modules_to_save"),
        "sglang": _drops("drops the layers of modules_to_save in silence"),
        **_both(_drops("drops the layers of modules_to_save in silence")),
    },
    Trait.CHANGED_BASE: {
        "vllm": _refuses("refuses an init that changes the base (PiSSA, OLoRA, CorDA, LoftQ)"),
        "sglang": _distorts("never looks at the init, and adds the update to a base it wasn't trained on"),
        **_both(_distorts("never looks at the init, and adds the update to a base it wasn't trained on")),
    },
    Trait.TOKENS: {
        "vllm": _refuses("refuses trained token embeddings"),
        "sglang": _drops("drops trained token embeddings in silence"),
        **_both(_drops("drops trained token embeddings in silence")),
    },
    Trait.ALORA: {
        "vllm": _refuses("refuses activated LoRA (aLoRA)"),
        "sglang": _WHOLE_ALORA,
        **_both(_WHOLE_ALORA),
    },
    Trait.ALORA_OTHERWISE: {engine.key: _WHOLE_ALORA for engine in ENGINES},
    Trait.REPLICATION: {
        "vllm": _refuses("refuses layer_replication"),
        "sglang": _distorts("has the base's own layers alone, and none that layer_replication adds"),
        **_both(_drops("drops the layers that layer_replication adds in silence")),
    },
    Trait.EXPERTS: {
        "vllm": _refuses("refuses LoRA on expert weights that this base doesn't have"),
        "sglang": _refuses("finds no module for LoRA on fused expert weights"),
        **_both(_drops("drops LoRA on fused expert weights in silence")),
    },
    Trait.BLOCK_DIAGONAL: {
        "vllm": _refuses("refuses block-diagonal LoRA"),
        "sglang": _distorts("multiplies block-diagonal matrices as if they were whole"),
        **_both(_distorts("multiplies block-diagonal matrices as if they were whole")),
    },
    Trait.POOLED: {
        "vllm": _refuses("refuses QALoRA"),
        "sglang": _distorts("doesn't pool the input as QALoRA does"),
        **_both(_distorts("doesn't pool the input as QALoRA does")),
    },
    Trait.VARIANT: {
        "vllm": _refuses("refuses the keys of LoRA variants (KaSA, MonteCLoRA), and doesn't route between adapters"),
        "sglang": _drops("drops what makes the variant in silence"),
        **_both(_drops("drops what makes the variant in silence")),
    },
    Trait.NEW_TOKENS: {
        "vllm": _drops("drops the embeddings of new tokens in silence"),
        "sglang": _drops("drops the embeddings of new tokens in silence"),
        **_both(_drops("drops the embeddings of new tokens in silence")),
    },
    Trait.ADDED_TOKENS: {"sglang": _refuses("refuses adapters that add tokens", Basis.READ)},
    Trait.RSLORA: {
        "sglang": _distorts(
            "scales by alpha over rank, not over its root, so that rsLoRA acts too weakly", Basis.REPORTED
        ),
    },
    Trait.RANK_PATTERN: {
        "sglang": _distorts("has one scale for all modules, whatever rank_pattern says"),
        **_both(_distorts("has one rank and scale for all modules, whatever rank_pattern says")),
    },
    Trait.ALPHA_PATTERN: {
        "sglang": _distorts("has one scale for all modules, whatever alpha_pattern says"),
        **_both(_distorts("has one scale for all modules, whatever alpha_pattern says")),
    },
    Trait.PATTERN_TARGETS: {"sglang": _refuses("takes no regular expression in target_modules")},
    Trait.ALL_LINEAR: {
        "sglang": Cell(Effect.NEEDS, "has to be started with --lora-target-modules, as 'all-linear' names no module"),
    },
    Trait.EMBEDDING: _both(_drops("drops LoRA on the embedding in silence")),
    Trait.HEAD: {"vllm": _LEAKS},
    Trait.TIED_HEAD: {"sglang": _refuses("can't put LoRA on a head that is tied to the embedding", Basis.REPORTED)},
    Trait.SOME_LAYERS: _both(_drops("drops a kind of module in silence when some layer has no weights for it")),
    Trait.RANK_STEP: _both(
        _distorts(
            "pads ranks other than 8 and the multiples of 16, and scales all but the first kind of module by that"
        )
    ),
    Trait.RANK_LIMIT: {
        "vllm": _refuses("refuses a rank above its --max-lora-rank"),
        "sglang": _refuses("refuses a rank above its --max-lora-rank", Basis.READ),
    },
    Trait.MISPLACED: {
        "vllm": _drops(
            "drops weights of modules it doesn't have in silence, or refuses them by the last part of the name"
        ),
        "sglang": _refuses("finds no module for some weights"),
        **_both(_drops("drops weights of modules it doesn't have in silence")),
    },
    Trait.MISSHAPEN: {
        "vllm": _distorts("copies a matrix that is too small into a corner of its slot, and fails at others"),
        "sglang": _refuses("refuses matrices of other shapes"),
        **_both(_refuses("can't stack matrices of other shapes, and doesn't start")),
    },
    Trait.NOT_FINITE: {
        "vllm": _POISONS,
        **{engine.key: replace(_POISONS, basis=Basis.INFERRED) for engine in ENGINES if engine.key != "vllm"},
    },
}
