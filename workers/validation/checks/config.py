"""Check "config": adapter_config.json is a plain LoRA whose settings engines apply as PEFT does."""

from collections.abc import Iterator, Mapping
from typing import Final

from workers.validation.checks import features
from workers.validation.kinds import CONFIG_FILE
from workers.validation.report import Check, Verdict, finding, several, shown
from workers.validation.settings import (
    Settings,
    finite_number,
    layer_numbers,
    names_or_pattern,
    rank_value,
)
from workers.validation.subject import Subject

NAME: Final = "config"
# Trainers scale by 0.1 to 32; what a thousandth of that leaves is lost in the rounding of 16-bit weights.
_FAINT_SCALE: Final = 1e-4

Content = Mapping[str, object]


def check(subject: Subject) -> Iterator[Check]:
    """Look at every setting; a missing file is the files check's matter."""
    if subject.config.fault:
        yield _fail("unreadable", f"{subject.config.fault}; export the adapter again")
    content = subject.config.content
    if content is None:
        return
    yield from _type(content)
    if content.get("peft_type") not in (None, "LORA"):
        return
    settings = subject.settings
    yield from _numbers(content)
    yield from _patterns(content)
    yield from _rank_limit(settings, subject.limits.max_rank)
    yield from _scale(settings, subject.limits.max_scale)
    yield from _targets(content)
    yield from _features(content)
    yield from _init(content.get("init_lora_weights", True))
    yield from _mapping(content.get("auto_mapping"))
    yield from _switches(content)
    yield from _unknown(content)


def _fail(code: str, sentence: str, **evidence: float | str | None) -> Check:
    return finding(NAME, Verdict.FAIL, code, f"{CONFIG_FILE}: {sentence}", **evidence)


def _warn(code: str, sentence: str, **evidence: float | str | None) -> Check:
    return finding(NAME, Verdict.WARN, code, f"{CONFIG_FILE}: {sentence}", **evidence)


def _value(value: object) -> str:
    return shown(repr(value))


def _type(content: Content) -> Iterator[Check]:
    kind, task = content.get("peft_type"), content.get("task_type")
    if kind is None:
        yield _fail("type", "peft_type is missing; a LoRA adapter says LORA (an MLX or hand-written config does not)")
    elif kind != "LORA":
        yield _fail("type", f"the adapter type peft_type is {_value(kind)}; engines serve only LORA")
    if task is not None and not (isinstance(task, str) and task in features.TASKS):
        yield _warn("task", f"task_type is {_value(task)}; it will be served for text generation (CAUSAL_LM)")


def _numbers(content: Content) -> Iterator[Check]:
    rank, alpha, dropout = content.get("r"), content.get("lora_alpha"), content.get("lora_dropout")
    if rank_value(rank) is None:
        yield _fail("r", f"the rank r is {_value(rank)}; it must be a whole number from 1")
    if finite_number(alpha) is None:
        yield _fail("alpha", f"lora_alpha is {_value(alpha)}; it must be a finite number")
    share = finite_number(dropout)
    if dropout is not None and (share is None or not 0 <= share <= 1):
        yield _warn("dropout", f"lora_dropout is {_value(dropout)}; it should be a number from 0 to 1")


def _patterns(content: Content) -> Iterator[Check]:
    readers = (("rank_pattern", rank_value, "ranks from 1"), ("alpha_pattern", finite_number, "finite numbers"))
    for key, read, wanted in readers:
        value = content.get(key)
        if value is None:
            continue
        if not isinstance(value, dict) or any(read(item) is None for item in value.values()):
            yield _fail(key, f"{key} is {_value(value)}; it must map module names to {wanted}")


def _rank_limit(settings: Settings, limit: int) -> Iterator[Check]:
    declared = {"r": settings.rank or 0, **{f"rank_pattern {key}": rank for key, rank in settings.rank_pattern.items()}}
    over = {key: rank for key, rank in declared.items() if rank > limit}
    if over:
        key, rank = max(over.items(), key=lambda item: item[1])
        sentence = f"{shown(key)} asks for rank {rank}, the limit for this base is {limit}: train with a smaller rank"
        yield _fail("rank_limit", sentence, rank=rank, limit=limit)


def _scale(settings: Settings, limit: float) -> Iterator[Check]:
    if settings.rank is None or settings.alpha is None:
        return
    ranks = [settings.rank, *settings.rank_pattern.values()]
    alphas = [settings.alpha, *settings.alpha_pattern.values()]
    scale = max(abs(settings.scale(rank, alpha) or 0.0) for rank in ranks for alpha in alphas)
    if scale > limit:
        sentence = (
            f"lora_alpha {settings.alpha:g} makes a scale of {scale:g} (alpha over rank), beyond {limit:g}: if "
            "that's a slip, answers will be rubbish"
        )
        yield _warn("scale", sentence, scale=scale, limit=limit)
    yield from _weakness(settings, scale)


def _weakness(settings: Settings, largest: float) -> Iterator[Check]:
    silenced = sorted(key for key, alpha in settings.alpha_pattern.items() if alpha == 0)
    if silenced and settings.alpha:
        yield _warn("alpha_zero", f"alpha_pattern is 0 for {several(silenced)}, so there is no effect there")
    if 0 < largest < _FAINT_SCALE:
        sentence = f"lora_alpha {settings.alpha:g} makes a scale of {largest:g} (alpha over rank): hardly any effect"
        yield _warn("scale_faint", sentence, scale=largest)
    if settings.alpha == 0:
        yield _warn("alpha_zero", "lora_alpha is 0, so the adapter has no effect")
    elif settings.alpha is not None and settings.alpha < 0:
        yield _warn("alpha_negative", f"lora_alpha is {settings.alpha:g}: a negative scale turns the effect round")


def _targets(content: Content) -> Iterator[Check]:
    value = content.get("target_modules")
    if names_or_pattern(value) is None:
        sentence = f"target_modules is {_value(value)}; it must name the modules that have weights, or be a pattern"
        yield _fail("target_modules", sentence)
    for key in ("exclude_modules", "layers_pattern"):
        if content.get(key) and names_or_pattern(content[key]) is None:
            yield _fail(key, f"{key} is {_value(content[key])}; it must be a list of names or a pattern")
    layers = content.get("layers_to_transform")
    if layers not in (None, []) and layer_numbers(layers) is None:
        yield _fail("layers", f"layers_to_transform is {_value(layers)}; it must be layer numbers")
    elif isinstance(value, str) and layers not in (None, []):
        yield _fail("layers", "layers_to_transform can't be used with a target_modules pattern; PEFT refuses it")


def _features(content: Content) -> Iterator[Check]:
    for key, sentence in features.UNSERVABLE.items():
        if content.get(key):
            yield _fail(key, sentence, value=_value(content[key]))
    bias = content.get("bias", "none")
    if bias != "none":
        yield _fail("bias", f"bias is {_value(bias)}; engines can't serve trained biases: train with bias 'none'")


def _init(value: object) -> Iterator[Check]:
    if value is None or isinstance(value, bool):
        return
    name = value.lower() if isinstance(value, str) else ""
    if name.startswith(features.CHANGED_BASE_INITS):
        sentence = (
            f"init_lora_weights is {_value(value)}, which changes the base's own weights: convert the adapter when "
            "saving (path_initial_model_for_weight_conversion)"
        )
        yield _fail("init", sentence)
    elif name == "lora_ga":
        sentence = (
            "init_lora_weights is 'lora_ga', which changes the base while training: unless it was converted when "
            "saving, the effect is not what was trained"
        )
        yield _warn("init_lora_ga", sentence)
    elif name not in features.PLAIN_INITS:
        yield _fail("init", f"init_lora_weights is {_value(value)}, which is unknown")


def _mapping(value: object) -> Iterator[Check]:
    """PEFT imports the module that auto_mapping names, whatever it is, to find the base's class in it."""
    library = value.get("parent_library") if isinstance(value, dict) else value
    is_known = isinstance(library, str) and library.partition(".")[0] in features.IMPORTED
    if library is not None and not is_known:
        sentence = f"auto_mapping names the module {_value(library)}, which PEFT would import and so run: leave it out"
        yield _fail("auto_mapping", sentence)


def _switches(content: Content) -> Iterator[Check]:
    wrong = [key for key in features.BOOLEANS if content.get(key) is not None and not isinstance(content[key], bool)]
    if wrong:
        yield _fail("boolean", f"{several(wrong)} must be true or false")
    if content.get("fan_in_fan_out") is True:
        yield _warn(
            "fan_in_fan_out", "fan_in_fan_out is on; this base's layers aren't stored transposed, it is ignored"
        )
    if content.get("ensure_weight_tying") is True:
        yield _warn("weight_tying", "ensure_weight_tying is on; engines keep the head and the embedding apart")


def _unknown(content: Content) -> Iterator[Check]:
    """Unknown settings at an off value are harmless; one that is switched on may change what the weights mean."""
    unknown = {key: value for key, value in sorted(content.items()) if key not in features.KNOWN and value}
    switched_on = [key for key, value in unknown.items() if value is True or isinstance(value, dict | list)]
    if switched_on:
        sentence = (
            f"the unknown setting {several(switched_on)} is switched on; an engine that doesn't know it would serve "
            "something else than was trained"
        )
        yield _fail("unknown_setting", sentence)
    others = [key for key in unknown if key not in switched_on]
    if others:
        yield _warn("unknown_value", f"the unknown setting {several(others)} is not looked at by engines")
