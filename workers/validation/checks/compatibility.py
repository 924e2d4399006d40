"""Check "compatibility": every tensor has its place in this base revision, with exactly its shape and declared rank."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from registry.base_models.modules import HEAD, BaseModules, Module
from registry.base_models.safetensors_header import TensorSpan
from workers.validation.checks import base_name
from workers.validation.checks.base_name import Likeness
from workers.validation.checks.keys import explain_key, explain_module
from workers.validation.kinds import CONFIG_FILE, WEIGHTS_FILE
from workers.validation.pairs import Layout, Pair, true_rank
from workers.validation.report import Check, Grouping, Verdict, finding, several, shown
from workers.validation.sandbox import PatternError
from workers.validation.settings import Settings
from workers.validation.subject import Subject
from workers.validation.targets import PatternTable, untargeted

NAME: Final = "compatibility"
_MATRIX: Final = 2
_NEWEST: Final = "main"
_UNTARGETED: Final = "which has weights: engines would apply them, PEFT would not; correct target_modules"


def check(subject: Subject) -> Iterator[Check]:
    """Compare with the base's tensors and with the config; without a sound file only the base's name is compared."""
    settings = subject.settings if subject.config.content is not None else None
    if subject.weights.header is not None:
        yield from _tensors(subject.layout, subject.modules, settings, subject.limits.max_rank)
        yield from _copied(sorted(subject.copies))
    if settings is not None:
        yield from _base(settings.base_name, subject.base_names, subject.base_hints)
        yield from _revision(settings.base_revision, (*subject.base_names, *subject.base_hints))


def _tensors(layout: Layout, base: BaseModules, settings: Settings | None, limit: int) -> Iterator[Check]:
    faults = Grouping(NAME)
    for key in layout.strays:
        code, sentence = explain_key(key)
        faults.add(code, key, f"{WEIGHTS_FILE}: {sentence}")
    ranks: dict[str, int] = {}
    for name, pair in layout.pairs.items():
        before = len(faults)
        _judge(name, pair, base, faults)
        rank = true_rank(pair)
        if rank is not None and len(faults) == before:
            ranks[name] = rank
    yield from faults.checks(Verdict.FAIL)
    yield from _rank_limit(ranks, limit)
    if settings is not None:
        yield from _against_config(ranks, base, settings)
    yield from _tied(layout, base)


def _judge(name: str, pair: Pair, base: BaseModules, faults: Grouping) -> None:
    module = base.modules.get(name)
    said = f"{WEIGHTS_FILE}: {shown(name)}"
    if module is None:
        code, sentence = explain_module(name, base)
        faults.add(code, name, f"{WEIGHTS_FILE}: {sentence}")
    elif pair.is_embedding != module.is_embedding:
        kind = "an embedding" if module.is_embedding else "a linear layer"
        faults.add("pair_kind", name, f"{said} is {kind}, but its keys are of the other kind")
    elif pair.a is None or pair.b is None:
        gone, kept = ("lora_A", "lora_B") if pair.a is None else ("lora_B", "lora_A")
        faults.add(
            "pair", name, f"{said} lacks {gone}: it is missing, its pair {kept} is there; save the adapter again"
        )
    else:
        _judge_shapes(name, pair.a, pair.b, module, faults)


def _judge_shapes(name: str, a: TensorSpan, b: TensorSpan, module: Module, faults: Grouping) -> None:
    """A is (rank, inputs), B is (outputs, rank); of an embedding, the inputs are its vocabulary."""
    before = len(faults)
    _judge_shape(name, "lora_A", a.shape, (None, module.inputs), faults, is_vocabulary=module.is_embedding)
    _judge_shape(name, "lora_B", b.shape, (module.outputs, None), faults, is_vocabulary=name == HEAD)
    if len(faults) == before and a.shape[0] != b.shape[1]:
        sentence = (
            f"{WEIGHTS_FILE}: the shapes of {shown(name)} disagree on the rank: lora_A {list(a.shape)}, lora_B "
            f"{list(b.shape)}; save the adapter again"
        )
        faults.add("pair_rank", name, sentence)


def _judge_shape(
    name: str,
    half: str,
    shape: tuple[int, ...],
    wanted: tuple[int | None, ...],
    faults: Grouping,
    *,
    is_vocabulary: bool,
) -> None:
    pattern = f"[{', '.join('rank' if width is None else str(width) for width in wanted)}]"
    said = f"{WEIGHTS_FILE}: {half} of {shown(name)} has the shape {list(shape)}, the base needs {pattern}"
    if math.prod(shape) == 0 or not shape:
        faults.add("empty", name, f"{said}: it is empty, as ZeRO-3 leaves it; gather the weights before saving")
    elif len(shape) != _MATRIX:
        faults.add("dimensions", name, f"{said}: it must be a matrix")
    elif _fits(shape, wanted):
        return
    elif _fits(shape[::-1], wanted):
        faults.add("transposed", name, f"{said}: the matrix is transposed, as MLX stores it")
    elif is_vocabulary:
        faults.add("vocabulary", name, f"{said}: the adapter was trained with another vocabulary")
    else:
        faults.add("shape", name, f"{said}: the adapter belongs to another base")


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return all(width in (None, size) for size, width in zip(shape, wanted, strict=True))


def _rank_limit(ranks: dict[str, int], limit: int) -> Iterator[Check]:
    over = {name: rank for name, rank in ranks.items() if rank > limit}
    if over:
        name, rank = max(over.items(), key=lambda item: item[1])
        message = (
            f"{WEIGHTS_FILE}: {shown(name)} has rank {rank}, the limit for this base is {limit}: train a smaller one"
        )
        yield finding(NAME, Verdict.FAIL, "rank_limit", message, rank=rank, limit=limit, count=len(over))


def _against_config(ranks: dict[str, int], base: BaseModules, settings: Settings) -> Iterator[Check]:
    faults = Grouping(NAME)
    names = tuple(ranks)
    try:
        _judge_ranks(ranks, PatternTable.read(settings.rank_pattern).values(names), settings.rank, faults)
        # Read for its keys' sake: an engine will match them as well.
        PatternTable.read(settings.alpha_pattern)
        if settings.targets is not None:
            for name in untargeted(names, settings, outputs=base.outputs):
                faults.add("untargeted", name, f"{CONFIG_FILE}: target_modules leaves out {shown(name)}, {_UNTARGETED}")
    except PatternError as error:
        faults.add("pattern", str(error), f"{CONFIG_FILE}: {error}; use plain module names")
    yield from faults.checks(Verdict.FAIL)


def _judge_ranks(ranks: dict[str, int], patterned: dict[str, int], default: int | None, faults: Grouping) -> None:
    for name, rank in ranks.items():
        declared = patterned.get(name, default)
        if declared is not None and declared != rank:
            sentence = (
                f"{WEIGHTS_FILE}: {shown(name)} has the true rank {rank}, {CONFIG_FILE} declares rank {declared}: "
                "the scale would be wrong; correct r or rank_pattern"
            )
            faults.add("rank", name, sentence)


def _tied(layout: Layout, base: BaseModules) -> Iterator[Check]:
    if not base.is_head_tied:
        return
    tied = sorted(layout.pairs.keys() & base.outputs)
    if tied:
        message = (
            f"{WEIGHTS_FILE}: {shown(tied[0])} has a LoRA, and the lm_head of this base is tied to its embedding: "
            "engines apply it to that side alone; some refuse it"
        )
        yield finding(NAME, Verdict.WARN, "tied", message, modules=tied)


def _copied(copies: Sequence[str]) -> Iterator[Check]:
    if copies:
        message = (
            f"{WEIGHTS_FILE}: {several(copies)} is a copy of the base's own embedding, which engines pass over: save "
            "with save_embedding_layers=False"
        )
        yield finding(NAME, Verdict.WARN, "copied_embedding", message, names=copies)


def _revision(recorded: str | None, known: tuple[str, ...]) -> Iterator[Check]:
    """A commit of the base that the adapter was trained on; which one this base is, only its name may tell."""
    if recorded not in (None, _NEWEST, *known):
        message = (
            f"{CONFIG_FILE}: the recorded revision of the base is {shown(str(recorded))}, which can't be compared: "
            "check that this base is of the same revision"
        )
        yield finding(NAME, Verdict.WARN, "base_revision", message, recorded=recorded)


def _base(recorded: str | None, known: tuple[str, ...], hints: tuple[str, ...]) -> Iterator[Check]:
    if recorded is None:
        message = f"{CONFIG_FILE}: base_model_name_or_path is empty, so that the base can't be compared: record it"
        yield finding(NAME, Verdict.WARN, "base_missing", message)
        return
    likeness = base_name.compare(recorded, known, hints)
    this = shown(next(iter((*known, *hints)), "another"))
    said = f"{CONFIG_FILE}: the recorded base is {shown(recorded)}"
    sentences = {
        Likeness.QUANTISED: (Verdict.WARN, f"{said}, a quantised variant of this base: effects may differ a little"),
        Likeness.VARIANT: (
            Verdict.WARN,
            f"{said}, this base is {this}: check that it is the same",
        ),
        Likeness.LOCAL: (
            Verdict.WARN,
            f"{said}, a local path that says nothing about the model: record the base's name",
        ),
        Likeness.OTHER: (
            Verdict.FAIL,
            f"{said}, this base is {this}: the adapter was trained on another model",
        ),
    }
    if likeness in sentences:
        verdict, message = sentences[likeness]
        yield finding(NAME, verdict, f"base_{likeness.value}", message, recorded=recorded, known=known)
